"""Dividing the budget among the tasks of a network (Ansor §6).

In: what each task has achieved so far. Out: which task gets the next round. `gradient.py` holds the
formula as a pure function, `objective.py` what it is of, `networks.py` what a task
contributes to that, `scheduler.py` the choice; nothing here measures.
"""
