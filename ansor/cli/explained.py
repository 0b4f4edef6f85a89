"""The explanation that ``ansor explain`` prints."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.cli.shown import tasks_of
from ansor.database.log import opened_records
from ansor.explain.choice import chosen
from ansor.explain.explanation import Explanation
from ansor.explain.recorded import explain_record
from ansor.targets.host.threads import available_cores
from ansor.targets.target import resolve_target
from ansor.task import Task


def explained(
    model: str, database: str, task: str | None, target: str, threads: int | None
) -> Explanation:
    """Explains the winner of a task of a model; the arguments are those of the command."""
    with opened_records("database", database) as records:
        variants = _variants(tasks_of(model, target, threads), task)
        cores = threads or available_cores()
        return explain_record(variants, records, resolve_target(target), cores, database)


def _variants(tasks: Sequence[Task], wanted: str | None) -> Sequence[Task]:
    """All variants of the function that a user names, or the one variant with that name."""
    by_name = {task.name: task for task in tasks if task.original is not None}
    if wanted in by_name:
        return [by_name[wanted]]
    functions: dict[str, list[Task]] = {}
    for task in tasks:
        functions.setdefault(task.group, []).append(task)
    keys = {name: " ".join(each.key for each in own) for name, own in functions.items()}
    return chosen(functions, wanted, keys)
