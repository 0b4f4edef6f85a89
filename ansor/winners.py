"""The program that each task ends with: re-timed, checked, or else the next one.

A task always has a runnable program: the best measured, the draft's best, and at the very last
the definition as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ansor.config import MeasureConfig, TuneConfig
from ansor.database.database import Database
from ansor.measure.device import Device
from ansor.measure.result import Measurement
from ansor.program.program import Program
from ansor.search_state import TaskSearch
from ansor.task import Task

_MOST_CHECKS = 8  # measured programs checked before a task gives up on all of them


@dataclass(frozen=True, eq=False)
class Winner:
    """What a function of the network ends with.

    Attributes:
        task: the variant of the function that won.
        program: to be applied; without steps if nothing else worked.
        latency_s: its median in the last comparison, None where it was not timed.
        difference: largest error of its output relative to the reference's largest value.
        note: what went wrong on the way, "" if nothing did.
    """

    task: Task
    program: Program
    latency_s: float | None
    difference: float | None
    note: str = ""


def num_leaders(minutes: float | None, tasks: int, config: TuneConfig) -> int:
    """How many programs of each task are timed again at the end; fewer where time is short."""
    most = config.measure.leaders
    if minutes is None:
        return most
    affordable = config.finish_share * minutes * 60 / (config.finish_per_leader_s * max(tasks, 1))
    return min(most, max(config.least_leaders, int(affordable)))


def finish_seconds(leaders: int, tasks: int, config: TuneConfig) -> float:
    """What comes after the search: timing leaders again, checking winners, compiling."""
    per_task = config.finish_per_task_s + config.finish_per_leader_s * leaders
    return config.finish_base_s + per_task * tasks


def choose_variant(
    variants: Sequence[TaskSearch],
    device: Device,
    database: Database,
    config: MeasureConfig,
    count: int,
) -> Winner:
    """The winner of the fastest variant of a function that has one.

    Args:
        variants: searches of one function; what it is as the model gives it comes first.
        count: as for `choose_winner`.
    """
    ranked = sorted(variants, key=lambda v: v.expected) if len(variants) > 1 else variants
    notes: list[str] = []
    for search in ranked:
        winner = choose_winner(search, device, database, config, count)
        if winner.program.steps:
            break
        notes.append(winner.note)
    else:
        winner = Winner(variants[0].task, Program(), None, None)
    return replace(winner, note="; ".join(filter(None, [*notes, winner.note])))


def choose_winner(
    search: TaskSearch, device: Device, database: Database, config: MeasureConfig, count: int
) -> Winner:
    """Returns the fastest program that computes the right result.

    Args:
        count: how many leaders are timed once more, in turns, so that noise does not decide; with
            one, none is.
    """
    leaders = _leaders(search, database, config, count)
    if len(leaders) > 1:
        leaders = _retimed(search, device, leaders, config)
    notes: list[str] = []
    for program, latency in _in_turn(search, database, leaders):
        check = device.verify(search.task, program)
        if check.error is None:
            return Winner(search.task, program, latency, check.difference, "; ".join(notes))
        notes.append(f"{check.error.value}: {check.message}")
        database.add(search.task, program, Measurement(error=check.error, message=check.message))
    return Winner(search.task, Program(), None, None, "; ".join(notes))


def _in_turn(
    search: TaskSearch, database: Database, leaders: Sequence[tuple[Program, float | None]]
) -> Iterator[tuple[Program, float | None]]:
    """What may win: the leaders, the next best measured, and the draft's best."""
    task, checked = search.task, [program for program, _ in leaders]
    best = database.best(task.key, task.target, _MOST_CHECKS)
    rest = [(r.program, r.latency_s) for r in best if r.program not in checked]
    return chain(leaders, rest[: _MOST_CHECKS - len(leaders)], _drafted(search))


def _leaders(
    search: TaskSearch, database: Database, config: MeasureConfig, count: int
) -> list[tuple[Program, float | None]]:
    task = search.task
    best = database.best(task.key, task.target, count)
    found = [(r.program, r.measurement.latency_s) for r in best if r.measurement.latency_s]
    if not found:
        return []
    limit = min(latency for _, latency in found) * (1 + config.leader_margin)
    return [(program, latency) for program, latency in found if latency <= limit]


def _retimed(
    search: TaskSearch,
    device: Device,
    leaders: Sequence[tuple[Program, float | None]],
    config: MeasureConfig,
) -> list[tuple[Program, float | None]]:
    programs = [program for program, _ in leaders]
    times = device.compare(search.task, programs, config.compare_rounds)
    fallback = [t if t is not None else old for t, (_, old) in zip(times, leaders, strict=True)]
    ranked = sorted(zip(programs, fallback, strict=True), key=lambda pair: pair[1] or float("inf"))
    return list(ranked)


def _drafted(search: TaskSearch) -> Iterator[tuple[Program, float | None]]:
    """The draft's best, made only if it is needed."""
    if search.drafted is not None:
        yield search.drafted.program, None
