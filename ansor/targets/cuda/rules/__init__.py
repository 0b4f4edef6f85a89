"""The derivation rules for GPUs; read `rules.py` first."""
