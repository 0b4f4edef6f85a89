"""Leaders timed against each other: in turns, or in the run of their network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ansor.config import MeasureConfig
from ansor.measure.call_plan import CallPlan
from ansor.measure.device import Device
from ansor.measure.result import is_time
from ansor.run.leaders import Leader, latency_of


def retimed(
    leaders: Mapping[str, list[Leader]], plan: CallPlan, device: Device, config: MeasureConfig
) -> dict[str, list[Leader]]:
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
            replace(x, latency_s=_credible(t, calls[name], x.least_s))
            for x, t in zip(leading, times[name], strict=True)
        ]
        for name, leading in known.items()
    }
    # Where nothing could be timed again, what was measured before still counts.
    kept = {
        n: leading if any(x.latency_s is not None for x in leading) else known[n]
        for n, leading in again.items()
    }
    return {name: sorted(kept.get(name, []), key=latency_of) for name in leaders}


def _credible(seconds: float | None, calls: int, least_s: float) -> float | None:
    """Seconds of one of so many calls; None for what is no time."""
    each = None if seconds is None else seconds / calls
    return each if is_time(each, least_s) else None


def _in_turns(
    leaders: Sequence[Leader], device: Device, config: MeasureConfig
) -> list[float | None]:
    """Latencies of the programs of one task."""
    programs = [leader.program for leader in leaders]
    turn_s = sum(config.compare_runs * (leader.latency_s or 0.0) for leader in leaders)
    fitting = int(config.compare_s / turn_s) if turn_s else config.compare_rounds
    rounds = min(config.compare_rounds, max(config.least_rounds, fitting))
    return device.compare(leaders[0].task, programs, rounds)
