"""Schedules that users write, as spaces of programs.

In: a template with knobs (`@template`, after AutoTVM), or a function of a `Schedule` that samples
(after MetaSchedule). Out: a `HandSchedule`, whose knobs are the decisions of a sketch. The function
runs once before the search, which lists its knobs (`record.py`). It runs again for each program, in
a worker process, with the chosen values. Read `template.py` first.
"""
