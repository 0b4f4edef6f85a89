"""NVIDIA GPUs: machine parameters, derivation rules, limits and draft model."""
