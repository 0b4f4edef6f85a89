"""Dividing the budget among the tasks of a network (Ansor §6).

In: the progress of each task. Out: the task that gets the next round. `gradient.py` has
the formula as a pure function. `objective.py` has the function to be minimised, and `networks.py`
the share of each task in it. `scheduler.py` chooses. Nothing here measures.
"""
