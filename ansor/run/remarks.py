"""Remarks for users before a run, as sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ansor.database.database import Database
from ansor.errors import ArgumentError
from ansor.run.task_choice import Choice, chosen_functions
from ansor.targets.backend import Backend
from ansor.task import Task

NOT_CHECKED = (
    "the winners are not timed and not checked, and the tuned network is not compared with the "
    "original: this machine cannot run them"
)


def machine_remarks(tasks: Sequence[Task], backend: Backend[Any], machine: Any) -> list[str]:
    """Remarks on the models on this machine, each once."""
    remarks = backend.search.remarks
    return list(dict.fromkeys(text for task in tasks for text in remarks(task.dag, machine)))


def choice_remarks(
    tasks: Sequence[Task], choices: tuple[Choice, ...] | None, records: Database
) -> list[str]:
    """The functions that are not tuned, and their programs; nothing if all are tuned."""
    chosen, names = chosen_functions(tasks, choices), functions_of(tasks)
    rest = [name for name in names if name not in chosen]
    if not rest:
        return []
    known = functions_of(tasks, lambda task: records.count(task.key, task.target))
    recorded = [name for name in rest if name in known]
    drafted = [name for name in rest if name not in known]
    remarks = [f"{len(chosen)} of {len(names)} functions are tuned"]
    if recorded:
        remarks.append(f"the best of the database is taken for {', '.join(recorded)}")
    if drafted:
        remarks.append(f"the draft chooses for {', '.join(drafted)}")
    return remarks


def transfer_remarks(tasks: Sequence[Task], sources: Sequence[Database]) -> list[str]:
    """The records of earlier runs for the functions; nothing without earlier runs."""
    if not sources:
        return []
    known = functions_of(tasks, lambda task: sum(source.count(task.key) for source in sources))
    missing = [name for name in functions_of(tasks) if name not in known]
    remarks = [f"transfer: records of {len(known)} functions"]
    return remarks + ([f"transfer: no record of {', '.join(missing)}"] if missing else [])


def check_applicable(tasks: Sequence[Task], records: Database) -> list[str]:
    """Names of functions without a record for the target, as a remark.

    Raises:
        ArgumentError: no function has one; the functions and the tasks of the log are named.
    """
    known = functions_of(tasks, lambda task: records.count(task.key, task.target))
    missing = [name for name in functions_of(tasks) if name not in known]
    if known or not missing:
        return [f"no record of {', '.join(missing)}; the draft chooses"] if missing else []
    here = ", ".join(sorted({entry.name for entry in records.tasks()})) or "no function"
    remedy = (
        f"it has no record of {', '.join(missing)}; its records are of {here}: tune the model, or "
        "give another log"
    )
    raise ArgumentError("log", "no record of this model", remedy)


def functions_of(tasks: Sequence[Task], count: Callable[[Task], int] = lambda task: 1) -> list[str]:
    """Names of functions with at least one variant of a count above zero, each once."""
    return list(dict.fromkeys(task.group for task in tasks if count(task)))
