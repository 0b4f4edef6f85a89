"""Dividing the budget among the tasks of a network (Ansor §6).

In: the progress of each task. Out: the task that gets the next round. File `gradient.py` has the
formula as a pure function. File `objective.py` has the function to be minimised, and `networks.py`
the share of each task in it. Class `TaskScheduler` in `scheduler.py` chooses. Nothing here
measures.
"""
