"""Explains the winner of a task from the records of a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansor.config import FULL
from ansor.database.database import Database
from ansor.errors import ArgumentError, UnsupportedError
from ansor.explain.explain import Subject, explain
from ansor.explain.explanation import Explanation
from ansor.explain.trials import TimedProgram, Trials, trials_of
from ansor.program.program import Program
from ansor.report.database_tables import target_name
from ansor.targets.registry import backend_of
from ansor.targets.target import Target, runs_here, target_text
from ansor.task import Task


def explain_record(
    variants: Sequence[Task],
    records: Database,
    target: Target,
    threads: int,
    place: str | None = None,
) -> Explanation:
    """Explains the winner of a function.

    The winner is the program that won the last comparison on this machine. The fastest record wins
    instead if there was no comparison, or if a faster program was measured later.

    Args:
        variants: of the function, with the canonical text of `target` for `threads`; as the model
            gives it comes first.
        records: measurements.
        target: of the programs.
        threads: of the programs.
        place: of the records, for errors; by default the file of the database.

    Raises:
        ArgumentError: the database has no successful record of the function for the target.
        UnsupportedError: the parameters of the target's machine are not known here.
    """
    trials = {x.kind: trials_of(records.records(x.key, x.target)) for x in variants}
    timed = [_Timed(task, one) for task in variants for one in trials[task.kind].fastest]
    if not timed:
        reason = _why_none(variants[0], records, trials)
        raise ArgumentError("database", place or str(records.file or "in memory"), reason)
    machine = machine_of(target, threads)
    search = backend_of(target).search
    winner = _winner(variants, records, sorted(timed, key=lambda x: x.measured.latency_s))
    sketches = search.sketches(winner[0].dag, machine, FULL.sketch)
    return explain(Subject(*winner, sketches, trials), machine, search)


def machine_of(target: Target, threads: int) -> Any:
    """The parameters of the machine of a target.

    Raises:
        UnsupportedError: it is not this machine, and its parameters are not known.
    """
    reader = backend_of(target).machine
    if reader.known(target) is None and not runs_here(target):
        name = target_name(target_text(target, threads))
        remedy = "explain its records on a machine of its kind"
        raise UnsupportedError(
            f"target={name!r}: the parameters of its machine are not known here", remedy
        )
    return reader.detect(target, threads)


class _Timed(NamedTuple):
    """A measured program and the variant that it computes."""

    task: Task
    measured: TimedProgram


def _winner(
    variants: Sequence[Task], records: Database, ranked: Sequence[_Timed]
) -> tuple[Task, Program, float | None]:
    """Variant and program that a run on this machine ends with, and its measured seconds.

    Args:
        variants: of the function.
        records: of elections.
        ranked: the fastest programs of all variants, fastest first.
    """
    last = records.elected(variants[0].key, variants[0].target)
    if last is not None:
        key, program = last.task_key, last.program
        if not program.steps:
            return variants[0], program, None
        for number, (task, one) in enumerate(ranked):
            if (task.key, one.program) == (key, program):
                is_known = all(faster.measured.time_s <= last.time_s for faster in ranked[:number])
                return (task, one.program, one.latency_s) if is_known else _first(ranked)
    return _first(ranked)


def _first(ranked: Sequence[_Timed]) -> tuple[Task, Program, float | None]:
    task, one = ranked[0]
    return task, one.program, one.latency_s


def _why_none(task: Task, records: Database, trials: Mapping[str, Trials]) -> str:
    """Why a function cannot be explained, with a remedy."""
    count = sum(len(each.each) for each in trials.values())
    if count:
        return f"all {count} measurements of task {task.group!r} failed; measure more"
    others = [target_name(target) for target in records.targets(task.key)]
    if others:
        here = f"task {task.group!r} has no record for {target_name(task.target)}"
        return f"{here}, but for {'; '.join(others)}; give that target and its threads"
    if not records.count():
        return "no records; tune the model with this database"
    known = ", ".join(sorted({entry.name for entry in records.tasks()}))
    return (
        f"no record of task {task.group!r} of this model; tune it, other tasks have some: {known}"
    )
