"""The final program of each function: the fastest one whose results are right.

Programs of all its variants compete. A function always has a runnable program: the best measured
one, else the draft's best, else the definition itself.

Deviation: the paper keeps the fastest measurement. The fastest of many measurements is often a
lucky one, so the leaders are timed again in turns. For a network, these turns run its whole
sequence of calls. The winner is compared with the definition.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ansor.config import MeasureConfig, TuneConfig
from ansor.database.database import Database
from ansor.errors import DatabaseError
from ansor.measure.call_plan import CallPlan
from ansor.measure.device import Device, TaskProgram
from ansor.measure.result import Measurement, Verification
from ansor.measure.tolerance import tolerance
from ansor.program.program import Program
from ansor.run.search.task_search import TaskSearch
from ansor.run.winners.leader_times import retimed
from ansor.run.winners.leaders import Leader, latency_of, leaders_of, measured_leaders
from ansor.run.winners.untuned import with_untuned
from ansor.task import Task


def nobody(chosen: Mapping[str, TaskProgram]) -> None:
    """Ignores the expected winners."""


@dataclass(frozen=True, eq=False)
class Winner:
    """The final program of a function.

    Attributes:
        task: the variant of the function that won.
        program: to be applied; without steps if nothing else worked.
        latency_s: its median in the last comparison, None where it was not timed.
        difference: largest error of its output relative to the largest value of the reference,
            which is computed in float64.
        note: errors of rejected programs, "" for none.
        runner_up_s: latency of the next best program in the last comparison.
        untuned_s: latency of the untuned program; None where it was not timed.
        spread: of the winner's turns, see `InTurns`; None where it is not known.
    """

    task: Task
    program: Program
    latency_s: float | None
    difference: float | None
    note: str = ""
    runner_up_s: float | None = None
    untuned_s: float | None = None
    spread: float | None = None


def num_leaders(minutes: float | None, tasks: int, config: TuneConfig) -> int:
    """Number of programs of each task that are timed again at the end; fewer if time is short."""
    most = config.measure.leaders
    if minutes is None:
        return most
    affordable = config.finish_share * minutes * 60 / (config.finish_per_leader_s * max(tasks, 1))
    return min(most, max(config.least_leaders, int(affordable)))


def finish_seconds(leaders: int, tasks: int, config: TuneConfig, networks: int = 1) -> float:
    """Seconds of the steps after the search: timing leaders again, checking winners, compiling."""
    per_task = config.finish_per_task_s + config.finish_per_leader_s * leaders
    return config.finish_base_s * networks + per_task * tasks


def choose_winners(
    functions: Mapping[str, Sequence[TaskSearch]],
    plan: CallPlan,
    device: Device,
    database: Database,
    config: MeasureConfig,
    count: int,
    ahead: Callable[[Mapping[str, TaskProgram]], None] = nobody,
) -> dict[str, Winner]:
    """The fastest program of each function that computes the right result.

    Args:
        functions: the searches of all variants of each; the variant of the model comes first.
        plan: how the network calls them.
        count: number of leaders of a function that are timed again, so that noise does not decide.
            They run within the whole network, or in turns if it has a single call without
            variants. With 1, the winner of the last comparison wins, unless a faster program was
            measured since.
        ahead: gets the expected winners before their results are checked.
    """
    leaders = {
        name: leaders_of(searches, database, config, count) for name, searches in functions.items()
    }
    if count == 1:
        return _checked(functions, leaders, device, database, config, ahead)
    if any(len(leading) > 1 for leading in leaders.values()):
        leaders = retimed(leaders, plan, device, config)
    leaders = with_untuned(functions, leaders, device, config)
    winners = _checked(functions, leaders, device, database, config, ahead)
    for name, winner in winners.items():
        if winner.latency_s is not None:
            with _noted():
                database.elect(functions[name][0].task.key, winner.task, winner.program)
    return winners


@contextmanager
def _noted() -> Iterator[None]:
    """Turns errors of writing into warnings, because the search is complete and its result is
    needed."""
    try:
        yield
    except DatabaseError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=4)


def _promised_s(search: TaskSearch) -> float:
    return math.inf if search.promised_s is None else search.promised_s


def _checked(
    functions: Mapping[str, Sequence[TaskSearch]],
    leaders: Mapping[str, Sequence[Leader]],
    device: Device,
    database: Database,
    config: MeasureConfig,
    ahead: Callable[[Mapping[str, TaskProgram]], None],
) -> dict[str, Winner]:
    """The first leader of each function whose results are right. Functions are checked together."""
    most = config.max_checks
    waiting = {
        name: _in_order(searches, leaders[name], database, most)
        for name, searches in functions.items()
    }
    notes: dict[str, list[str]] = {name: [] for name in functions}
    winners: dict[str, Winner] = {}
    while waiting:
        next_ones = {name: next(queue, None) for name, queue in waiting.items()}
        tried = {name: leader for name, leader in next_ones.items() if leader is not None}
        if not winners:
            ahead({name: (leader.task, leader.program) for name, leader in tried.items()})
        for name, check in _verified(tried, device, database, config).items():
            x = tried[name]
            if check.error is None:
                note = "; ".join(notes[name])
                winners[name] = _winner(x, leaders[name], check.difference, note)
                continue
            notes[name].append(f"{check.error.value}: {check.message}")
            failed = Measurement(error=check.error, message=check.message)
            with _noted():
                database.add(x.task, x.program, failed)
        for name in set(waiting) - set(tried):
            task, note = functions[name][0].task, "; ".join(notes[name])
            winners[name] = Winner(task, Program(), None, None, note)
        waiting = {name: queue for name, queue in waiting.items() if name not in winners}
    return {name: winners[name] for name in functions}


def _winner(x: Leader, leading: Sequence[Leader], difference: float | None, note: str) -> Winner:
    """A leader whose results are right, with the times of the leaders behind it."""
    place = leading.index(x) if x in leading else len(leading)
    runners = [other.latency_s for other in leading[place + 1 :] if not other.is_untuned]
    untuned = [other.latency_s for other in leading if other.is_untuned]
    if x.is_untuned:
        note = "; ".join([note, "no program is faster than the untuned one"]).removeprefix("; ")
    return Winner(
        *(x.task, x.program, x.latency_s, difference, note),
        runner_up_s=next(iter(runners), None),
        untuned_s=next(iter(untuned), None),
        spread=x.spread,
    )


def _verified(
    tried: Mapping[str, Leader], device: Device, database: Database, config: MeasureConfig
) -> dict[str, Verification]:
    """Checks of programs: those in the database, or else new ones on the device."""
    known = {name: database.checked(x.task, x.program) for name, x in tried.items()}
    allowed = {
        name: min(config.verify_rtol, tolerance(x.task.dag, config)) for name, x in tried.items()
    }
    found = {n: Verification(d) for n, d in known.items() if d is not None and d <= allowed[n]}
    fresh = {name: x for name, x in tried.items() if name not in found}
    checks = device.verify([(x.task, x.program) for x in fresh.values()]) if fresh else []
    for (name, x), check in zip(fresh.items(), checks, strict=True):
        found[name] = check
        if check.error is None and check.difference is not None:
            with _noted():
                database.add_check(x.task, x.program, check.difference)
    return found


def _in_order(
    variants: Sequence[TaskSearch], leaders: Sequence[Leader], database: Database, most: int
) -> Iterator[Leader]:
    """The possible winners: the leaders, the next best measured up to `most`, and the draft's
    best."""
    yield from leaders
    seen = [(leader.task.key, leader.program) for leader in leaders]
    each = -(-most // len(variants))  # all programs of one variant may be wrong
    rest = [x for search in variants for x in measured_leaders(search, database, each)]
    fresh = [x for x in sorted(rest, key=latency_of) if (x.task.key, x.program) not in seen]
    yield from fresh[: most - len(leaders)]
    promising = sorted(variants, key=_promised_s) if len(variants) > 1 else variants
    for search in promising:
        if search.drafted is not None:
            yield Leader(search.task, search.drafted.program, None)
