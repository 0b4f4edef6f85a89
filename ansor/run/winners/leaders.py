"""The programs that may win: the best measured ones of all variants of a function."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansor.config import MeasureConfig
from ansor.database.database import Database
from ansor.measure.result import is_time
from ansor.program.program import Program, shared_axes
from ansor.run.search.task_search import TaskSearch
from ansor.task import Task


@dataclass(frozen=True, eq=False)
class Leader:
    """A program that may win.

    Attributes:
        latency_s: None if it was never measured.
        time_s: time of its measurement, in seconds since 1970.
        least_s: seconds that no program of the task can fall below.
        spread: of its turns in the last comparison, see `InTurns`.
        disturbed: whether the machine was slow or busy when it was measured.
    """

    task: Task
    program: Program
    latency_s: float | None
    time_s: float = 0.0
    least_s: float = 0.0
    spread: float | None = None
    disturbed: bool = False

    @property
    def is_untuned(self) -> bool:
        """Whether it is the definition itself."""
        return not self.program.steps


def leaders_of(
    variants: Sequence[TaskSearch], database: Database, config: MeasureConfig, count: int
) -> list[Leader]:
    """Measured programs near the best of all variants, best first."""
    found = [
        x for search in variants for x in measured_leaders(search, database, config.max_ranked)
    ]
    ranked = sorted(found, key=latency_of)
    if count == 1:
        return _elected(variants[0].task, ranked, database) or ranked[:1]
    limit = latency_of(ranked[0]) * (1 + config.leader_margin) if ranked else 0.0
    heads = {x.task.key: x for x in reversed(ranked)}  # in the network another variant may win
    near = [x for x in ranked if latency_of(x) <= limit or x in heads.values()]
    doubtful = _doubtful(ranked, limit, config)[: count // 4]
    room = count - len(doubtful)
    leaders = _diverse(near, room)
    preferred = _preferred(leaders, variants) if count >= config.least_with_preferred else None
    if preferred is not None:
        leaders = [*_diverse(near, room - 1), preferred]
    known = [(leader.task.key, leader.program) for leader in leaders]
    return [*leaders, *(x for x in doubtful if (x.task.key, x.program) not in known)]


def _doubtful(ranked: Sequence[Leader], limit_s: float, config: MeasureConfig) -> list[Leader]:
    """Disturbed programs beyond the limit of leaders that may be below it on a quiet machine."""
    most_s = latency_of(ranked[0]) * config.again_factor if ranked else 0.0
    return [x for x in ranked if x.disturbed and limit_s < latency_of(x) <= most_s]


def _preferred(leaders: Sequence[Leader], variants: Sequence[TaskSearch]) -> Leader | None:
    """The program of the best variant that the draft preferred, if it is not among the leaders.

    Its only measurement may have been disturbed. A search must not end with a slower program.
    """
    for search in variants:
        preferred = search.policy.preferred
        if leaders and search.task is leaders[0].task and preferred is not None:
            latency_s, least_s = preferred.latency_s, search.least_s
            found = Leader(search.task, preferred.program, latency_s, least_s=least_s)
            known = any(x.task is found.task and x.program == found.program for x in leaders)
            return None if known else found
    return None


def _elected(first: Task, ranked: Sequence[Leader], database: Database) -> list[Leader]:
    """The winner of the last comparison of a function's leaders; none if a faster program was
    measured since."""
    last = database.elected(first.key, first.target)
    if last is not None and not last.program.steps:
        is_known = not ranked or ranked[0].time_s <= last.time_s
        return [Leader(first, last.program, None)] if is_known else []
    for number, leader in enumerate(ranked):
        if last is not None and (leader.task.key, leader.program) == (last.task_key, last.program):
            faster = ranked[:number]
            return [] if any(x.time_s > last.time_s for x in faster) else [leader]
    return []


def were_elected(
    functions: Mapping[str, Sequence[TaskSearch]], database: Database, since_s: float
) -> bool:
    """Whether the leaders of each function were compared after a time.

    Args:
        functions: the searches of all variants of each; the variant of the model comes first.
        database: of the elections.
        since_s: in seconds since 1970.
    """
    first = [variants[0].task for variants in functions.values()]
    last = [database.elected(task.key, task.target) for task in first]
    return all(each is not None and each.time_s >= since_s for each in last)


def _diverse(ranked: Sequence[Leader], count: int) -> list[Leader]:
    """Half of the leaders are the first ones. The others are the best for each way to share work
    among the cores, because the place of a result in the caches matters to the next function.
    """
    ways: dict[object, Leader] = {}
    for leader in ranked:
        ways.setdefault((leader.task.key, shared_axes(leader.program)), leader)
    head = list(ranked[: count - count // 2])
    others = [x for x in (*ways.values(), *ranked) if x not in head]
    return sorted([*head, *dict.fromkeys(others)][:count], key=latency_of)


def measured_leaders(search: TaskSearch, database: Database, count: int) -> list[Leader]:
    records = database.best(search.task.key, search.task.target, count)
    measured = [record for record in records if is_time(record.latency_s, search.least_s)]
    least_s = search.least_s
    return [
        Leader(
            *(search.task, r.program, r.latency_s, r.origin.time_s, least_s),
            disturbed=r.measurement.disturbed,
        )
        for r in measured
    ]


def latency_of(leader: Leader) -> float:
    return math.inf if leader.latency_s is None else leader.latency_s
