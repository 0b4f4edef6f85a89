"""The searches of a network's tasks, grouped by the functions that they make faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ansor.run.search.task_search import TaskSearch
from ansor.task import Task


def searches_by_function(
    searches: Sequence[TaskSearch], tasks: Sequence[Task]
) -> dict[str, list[TaskSearch]]:
    """The searches of a network's tasks by function: all variants of one together."""
    known = {search.task.key: search for search in searches}
    found: dict[str, list[TaskSearch]] = {}
    for task in tasks:
        own = replace(known[task.key], task=task)
        found.setdefault(task.group, []).append(own)
    return found


def seconds_of(searches: Sequence[TaskSearch], tasks: Sequence[Task]) -> float | None:
    """Seconds of a network's functions together; None if one of them has no latency.

    Args:
        searches: of all tasks.
        tasks: of the network; those without a search do not count.
    """
    known = {search.task.key for search in searches}
    functions = searches_by_function(searches, [task for task in tasks if task.key in known])
    total = 0.0
    for own in functions.values():
        best = [search.best_s for search in own if search.best_s is not None]
        if not best:
            return None
        total += own[0].task.weight * min(best)
    return total
