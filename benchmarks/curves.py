"""Best-so-far curves of searches, and summaries for each operator and policy."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.replay import Trial

NEAR = 1.05  # times the best known latency: close enough to count as found


@dataclass(frozen=True)
class Curve:
    """One search.

    Attributes:
        best_us: the best latency after each trial; None before the first success.
        seconds: when that was known, from the start of the search.
        retimed_us: of the best program, timed in turns with those of the other searches: what a
            busy moment of the machine did to a measurement does not count. None where it failed.
    """

    op: str
    policy: str
    seed: int
    best_us: tuple[float | None, ...]
    seconds: tuple[float, ...]
    retimed_us: float | None = None

    @property
    def final_us(self) -> float:
        """Microseconds of the best program as it was measured; infinite where none ran."""
        last = self.best_us[-1] if self.best_us else None
        return math.inf if last is None else last

    @property
    def result_us(self) -> float:
        """The same as it was timed again, if it was."""
        return self.final_us if self.retimed_us is None else self.retimed_us

    def trials_to(self, goal_us: float) -> float:
        """Trials until a latency is reached, infinite where it never is."""
        reached = (n for n, t in enumerate(self.best_us, 1) if t is not None and t <= goal_us)
        return next(reached, math.inf)

    def seconds_to(self, goal_us: float) -> float:
        """The same in seconds."""
        trials = self.trials_to(goal_us)
        return self.seconds[int(trials) - 1] if math.isfinite(trials) else math.inf


@dataclass(frozen=True)
class Summary:
    """All seeds of one policy on one operator; medians, None for levels that the median never
    reached.

    Attributes:
        final_us: microseconds after the last trial, as measured.
        retimed_us: the same program's, timed again.
        ratio: that over the best of all searches.
        trials_to_near: trials until within 5 % of the best that any search measured.
        seconds_to_near: the same in seconds.
        reached: searches that came so near.
        searches: number of searches.
        search_s: seconds of a whole search.
    """

    op: str
    policy: str
    final_us: float | None
    retimed_us: float | None
    ratio: float | None
    trials_to_near: float | None
    seconds_to_near: float | None
    reached: int
    searches: int
    search_s: float


def curve(op: str, policy: str, seed: int, trials: Sequence[Trial], began_s: float) -> Curve:
    """Cumulative minimum of a search's measurements."""
    best: list[float | None] = []
    least = math.inf
    for trial in trials:
        least = min(least, math.inf if trial.latency_s is None else trial.latency_s)
        best.append(least * 1e6 if math.isfinite(least) else None)
    return Curve(op, policy, seed, tuple(best), tuple(t.time_s - began_s for t in trials))


def summarise(curves: Sequence[Curve]) -> list[Summary]:
    """One row per operator and policy, in the order in which they come."""
    rows = []
    for op in dict.fromkeys(c.op for c in curves):
        own = [c for c in curves if c.op == op]
        for policy in dict.fromkeys(c.policy for c in own):
            rows.append(_summary([c for c in own if c.policy == policy], own))
    return rows


def _summary(curves: Sequence[Curve], rivals: Sequence[Curve]) -> Summary:
    """One policy's searches among all of the same operator."""
    least = min(c.final_us for c in rivals)
    goal = least * NEAR if math.isfinite(least) else -math.inf
    result = _finite(statistics.median(c.result_us for c in curves))
    return Summary(
        op=curves[0].op,
        policy=curves[0].policy,
        final_us=_finite(statistics.median(c.final_us for c in curves)),
        retimed_us=result,
        ratio=None if result is None else result / min(c.result_us for c in rivals),
        trials_to_near=_median(c.trials_to(goal) for c in curves),
        seconds_to_near=_median(c.seconds_to(goal) for c in curves),
        reached=sum(math.isfinite(c.trials_to(goal)) for c in curves),
        searches=len(curves),
        search_s=statistics.median(c.seconds[-1] if c.seconds else 0.0 for c in curves),
    )


def _median(values: Iterable[float]) -> float | None:
    """None where half of the values or more are infinite; no mean of two in the middle."""
    return _finite(statistics.median_high(values))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
