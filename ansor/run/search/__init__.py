"""The search of a run: rounds of the tasks, until the budget ends."""
