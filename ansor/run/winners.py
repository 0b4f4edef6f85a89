"""The program that each function ends with: re-timed, checked, or else the next one.

Programs of all its variants compete. A function always has a runnable program: the best measured,
the draft's best, and at the very last the definition as it was written.

Deviation: the paper keeps the fastest measurement. The fastest of many is often a lucky one, so the
leaders are timed again in turns, those of a network in its whole sequence of calls, and the winner
is compared with the definition.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ansor.config import MeasureConfig, TuneConfig
from ansor.database.database import Database
from ansor.errors import DatabaseError
from ansor.measure.call_plan import CallPlan
from ansor.measure.device import Device, TaskProgram
from ansor.measure.local_device import tolerance
from ansor.measure.result import Measurement, Verification
from ansor.program.program import Program, shared_axes
from ansor.run.task_search import TaskSearch
from ansor.task import Task


def nobody(chosen: Mapping[str, TaskProgram]) -> None:
    """Who has no use for what may win before it has been checked."""


@dataclass(frozen=True, eq=False)
class Winner:
    """What a function of the network ends with.

    Attributes:
        task: the variant of the function that won.
        program: to be applied; without steps if nothing else worked.
        latency_s: its median in the last comparison, None where it was not timed.
        difference: largest error of its output relative to the largest value of the reference,
            which is computed in float64.
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


def finish_seconds(leaders: int, tasks: int, config: TuneConfig, networks: int = 1) -> float:
    """What comes after the search: timing leaders again, checking winners, compiling."""
    per_task = config.finish_per_task_s + config.finish_per_leader_s * leaders
    return config.finish_base_s * networks + per_task * tasks


@dataclass(frozen=True, eq=False)
class _Leader:
    """A program that may win.

    Attributes:
        latency_s: None if it was never measured.
        time_s: when it was, in seconds since 1970.
    """

    task: Task
    program: Program
    latency_s: float | None
    time_s: float = 0.0


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
        functions: the searches of all variants of each; as the model gives it comes first.
        plan: how the network calls them.
        count: how many leaders of a function are timed once more, so that noise does not decide:
            in the run of the whole network, or, where that is a single call without variants, in
            turns. With one, none is: what won the last comparison wins, unless something faster
            was measured since.
        ahead: told what will win, if it is right, before that is checked.
    """
    leaders = {
        name: _leaders(searches, database, config, count) for name, searches in functions.items()
    }
    if all(len(leading) <= 1 for leading in leaders.values()):
        return _checked(functions, leaders, device, database, config, ahead)
    leaders = _retimed(leaders, plan, device, config)
    winners = _checked(functions, leaders, device, database, config, ahead)
    for name, winner in winners.items():
        if winner.latency_s is not None:
            with _noted():
                database.elect(functions[name][0].task.key, winner.task, winner.program)
    return winners


@contextmanager
def _noted() -> Iterator[None]:
    """What cannot be written is a warning here: the search is over, and its result is wanted."""
    try:
        yield
    except DatabaseError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=4)


def _leaders(
    variants: Sequence[TaskSearch], database: Database, config: MeasureConfig, count: int
) -> list[_Leader]:
    """Measured programs near the best of all variants, best first."""
    found = [x for search in variants for x in _measured(search, database, config.max_ranked)]
    ranked = sorted(found, key=_latency)
    if count == 1:
        return _elected(variants[0].task, ranked, database) or ranked[:1]
    limit = _latency(ranked[0]) * (1 + config.leader_margin) if ranked else 0.0
    heads = {x.task.key: x for x in reversed(ranked)}  # in the network another variant may win
    near = [x for x in ranked if _latency(x) <= limit or x in heads.values()]
    leaders = _diverse(near, count)
    preferred = _preferred(leaders, variants) if count >= config.least_with_preferred else None
    return leaders if preferred is None else [*_diverse(near, count - 1), preferred]


def _preferred(leaders: Sequence[_Leader], variants: Sequence[TaskSearch]) -> _Leader | None:
    """What the draft preferred of the best variant, if it is not among the leaders.

    Its only measurement may have been disturbed: a search is not to end with anything slower.
    """
    for search in variants:
        preferred = search.policy.preferred
        if leaders and search.task is leaders[0].task and preferred is not None:
            found = _Leader(search.task, preferred.program, preferred.latency_s)
            known = any(x.task is found.task and x.program == found.program for x in leaders)
            return None if known else found
    return None


def _elected(first: Task, ranked: Sequence[_Leader], database: Database) -> list[_Leader]:
    """What won the last comparison of a function's leaders; nothing if something that is faster
    was measured since."""
    last = database.elected(first.key, first.target)
    for number, leader in enumerate(ranked):
        if last is not None and (leader.task.key, leader.program) == (last.task_key, last.program):
            faster = ranked[:number]
            return [] if any(x.time_s > last.time_s for x in faster) else [leader]
    return []


def _diverse(ranked: Sequence[_Leader], count: int) -> list[_Leader]:
    """Half of them the first, the others the best of each way to share work among the cores.

    In a network it matters where the next function finds its input.
    """
    ways: dict[object, _Leader] = {}
    for leader in ranked:
        ways.setdefault((leader.task.key, shared_axes(leader.program)), leader)
    head = list(ranked[: count - count // 2])
    others = [x for x in (*ways.values(), *ranked) if x not in head]
    return sorted([*head, *dict.fromkeys(others)][:count], key=_latency)


def _measured(search: TaskSearch, database: Database, count: int) -> list[_Leader]:
    records = database.best(search.task.key, search.task.target, count)
    measured = [record for record in records if record.latency_s]
    return [_Leader(search.task, r.program, r.latency_s, r.origin.time_s) for r in measured]


def _promised_s(search: TaskSearch) -> float:
    return math.inf if search.promised_s is None else search.promised_s


def _latency(leader: _Leader) -> float:
    return math.inf if leader.latency_s is None else leader.latency_s


def _retimed(
    leaders: Mapping[str, list[_Leader]], plan: CallPlan, device: Device, config: MeasureConfig
) -> dict[str, list[_Leader]]:
    """The leaders with new latencies, best first; those that failed now come last."""
    known = {name: leading for name, leading in leaders.items() if leading}
    tasks = {leader.task.key for leading in known.values() for leader in leading}
    if len(plan.calls) > 1 or len(tasks) > 1:
        candidates = {n: [(x.task, x.program) for x in leading] for n, leading in known.items()}
        times = device.rehearse(plan, candidates, config.rehearsal_s)
        calls = Counter(call.function for call in plan.calls)
    else:
        times = {name: _in_turns(leading, device, config) for name, leading in known.items()}
        calls = Counter(known.keys())
    again = {
        name: [
            replace(x, latency_s=None if t is None else t / calls[name])
            for x, t in zip(leading, times[name], strict=True)
        ]
        for name, leading in known.items()
    }
    # Where nothing could be timed again, what was measured before still counts.
    kept = {
        n: leading if any(x.latency_s is not None for x in leading) else known[n]
        for n, leading in again.items()
    }
    return {name: sorted(kept.get(name, []), key=_latency) for name in leaders}


def _in_turns(
    leaders: Sequence[_Leader], device: Device, config: MeasureConfig
) -> list[float | None]:
    """Latencies of the programs of one task."""
    programs = [leader.program for leader in leaders]
    turn_s = sum(config.compare_runs * (leader.latency_s or 0.0) for leader in leaders)
    fitting = int(config.compare_s / turn_s) if turn_s else config.compare_rounds
    rounds = min(config.compare_rounds, max(config.least_rounds, fitting))
    return device.compare(leaders[0].task, programs, rounds)


def _checked(
    functions: Mapping[str, Sequence[TaskSearch]],
    leaders: Mapping[str, Sequence[_Leader]],
    device: Device,
    database: Database,
    config: MeasureConfig,
    ahead: Callable[[Mapping[str, TaskProgram]], None],
) -> dict[str, Winner]:
    """Of each function the first of all that may win that is right; checked all at once."""
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
                winners[name] = Winner(x.task, x.program, x.latency_s, check.difference, note)
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


def _verified(
    tried: Mapping[str, _Leader], device: Device, database: Database, config: MeasureConfig
) -> dict[str, Verification]:
    """Whether programs are right: as the database knows it, or else as the device finds out."""
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
    variants: Sequence[TaskSearch], leaders: Sequence[_Leader], database: Database, most: int
) -> Iterator[_Leader]:
    """What may win: the leaders, the next best measured up to `most`, and the draft's best."""
    yield from leaders
    seen = [(leader.task.key, leader.program) for leader in leaders]
    each = -(-most // len(variants))  # all programs of one may be wrong
    rest = [x for search in variants for x in _measured(search, database, each)]
    fresh = [x for x in sorted(rest, key=_latency) if (x.task.key, x.program) not in seen]
    yield from fresh[: most - len(leaders)]
    promising = sorted(variants, key=_promised_s) if len(variants) > 1 else variants
    for search in promising:
        if search.drafted is not None:
            yield _Leader(search.task, search.drafted.program, None)
