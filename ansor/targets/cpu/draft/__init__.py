"""The analytic draft of a program's time on a CPU; read `draft.py` first."""
