"""The analytic draft of a program's time on a GPU; read `draft.py` first."""
