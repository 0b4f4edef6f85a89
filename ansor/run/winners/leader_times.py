"""Leaders timed against each other: in turns, or in the run of their network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ansor.config import MeasureConfig
from ansor.measure.call_plan import CallPlan
from ansor.measure.device import Device
from ansor.measure.result import InTurns, is_time
from ansor.run.winners.leaders import Leader, latency_of


def retimed(
    leaders: Mapping[str, list[Leader]], plan: CallPlan, device: Device, config: MeasureConfig
) -> dict[str, list[Leader]]:
    """The leaders with new latencies, best first; leaders that failed come last."""
    known = {name: leading for name, leading in leaders.items() if leading}
    tasks = {leader.task.key for leading in known.values() for leader in leading}
    if len(plan.calls) > 1 or len(tasks) > 1:
        again = _rehearsed(known, plan, device, config)
    else:
        again = {name: in_turns(leading, device, config) for name, leading in known.items()}
    # If nothing could be timed again, earlier measurements count.
    kept = {
        n: leading if any(x.latency_s is not None for x in leading) else known[n]
        for n, leading in again.items()
    }
    return {name: sorted(kept.get(name, []), key=latency_of) for name in leaders}


def _rehearsed(
    leaders: Mapping[str, Sequence[Leader]], plan: CallPlan, device: Device, config: MeasureConfig
) -> dict[str, list[Leader]]:
    """The leaders with their latencies in runs of the network."""
    candidates = {n: [(x.task, x.program) for x in leading] for n, leading in leaders.items()}
    times = device.rehearse(plan, candidates, config.rehearsal_s)
    calls = Counter(call.function for call in plan.calls)
    return {
        name: [
            _with_time(x, None if t is None else InTurns(t / calls[name]))
            for x, t in zip(leading, times[name], strict=True)
        ]
        for name, leading in leaders.items()
    }


def in_turns(
    leaders: Sequence[Leader], device: Device, config: MeasureConfig, most: int | None = None
) -> list[Leader]:
    """Programs of one task with their latencies in turns.

    Args:
        most: number of rounds; by default as many as the time of `config` allows.
    """
    programs = [leader.program for leader in leaders]
    turn_s = sum(config.compare_runs * (leader.latency_s or 0.0) for leader in leaders)
    fitting = int(config.compare_s / turn_s) if turn_s else config.compare_rounds
    rounds = min(most or config.compare_rounds, max(config.least_rounds, fitting))
    times = device.compare_turns(leaders[0].task, programs, rounds)
    return [_with_time(x, turns) for x, turns in zip(leaders, times, strict=True)]


def _with_time(leader: Leader, turns: InTurns | None) -> Leader:
    """A leader with its latest time, without one if that is invalid."""
    if turns is None or not is_time(turns.latency_s, leader.least_s):
        return replace(leader, latency_s=None, spread=None)
    return replace(leader, latency_s=turns.latency_s, spread=turns.spread)
