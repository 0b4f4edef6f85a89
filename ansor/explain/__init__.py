"""Why the winner of a task is fast, and what limits it; read `explain.py` first."""
