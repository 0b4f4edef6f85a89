"""Summary of searches by several policies: medians, quartiles and ratios to the first policy."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.curves import NEAR
from benchmarks.policy_search import Search

BEST_OF_OTHERS = "best of the others"  # on each operator


@dataclass(frozen=True)
class Row:
    """One policy on one operator after a number of trials, over all seeds.

    Attributes:
        median_us: of the best latency.
        lower_us: first quartile.
        upper_us: third quartile.
        seconds: median time until then.
        ratio: the median over that of the first policy. Above 1 the first policy is faster.
        spread: the distance of the quartiles over the median.
        trials_to_near: median of the trials until a search was within 5 % of the best of all
            searches; None if half of the searches or more were not.
    """

    op: str
    policy: str
    trials: int
    median_us: float | None
    lower_us: float | None
    upper_us: float | None
    seconds: float
    ratio: float | None
    spread: float | None
    trials_to_near: float | None


@dataclass(frozen=True)
class Overall:
    """One policy over all operators after a number of trials.

    Attributes:
        ratio: geometric mean of the ratios of the rows; None if a row has none.
        spread: median of the spreads of the rows.
        reached: share of the searches that came within 5 % of the best of all searches.
        trials_to_near: median over these and the other searches, as in `Row`.
    """

    policy: str
    trials: int
    ratio: float | None
    spread: float | None
    reached: float | None
    trials_to_near: float | None


Retimed = Mapping[str, Mapping[str, float]]


def latency_us(search: Search, trials: int, retimed_us: Retimed) -> float:
    """Microseconds of the best of the first trials, from the second timing if there is one."""
    step = search.at(trials)
    if step is None:
        return math.inf
    return retimed_us.get(search.job.op, {}).get(step.program, step.best_us)


def rows_of(searches: Sequence[Search], trials: Sequence[int], retimed_us: Retimed) -> list[Row]:
    """A row per operator, policy and number of trials, in the order in which they come."""
    rows: list[Row] = []
    for op in dict.fromkeys(s.job.op for s in searches):
        own = [s for s in searches if s.job.op == op]
        goal_us = NEAR * min(s.best_us(max(trials)) for s in own)
        for count in trials:
            base: float | None = None
            for policy in dict.fromkeys(s.job.policy for s in own):
                same = [s for s in own if s.job.policy == policy]
                times = [latency_us(s, count, retimed_us) for s in same]
                base = _quartiles(times)[1] if base is None else base
                rows.append(_row(same, count, times, base, goal_us))
    return rows


def _row(
    searches: Sequence[Search], trials: int, times_us: Sequence[float], base_us: float, goal: float
) -> Row:
    lower, median, upper = _quartiles(times_us)
    near = statistics.median_high([_within(s.trials_to(goal), trials) for s in searches])
    return Row(
        op=searches[0].job.op,
        policy=searches[0].job.policy,
        trials=trials,
        median_us=_finite(median),
        lower_us=_finite(lower),
        upper_us=_finite(upper),
        seconds=statistics.median(s.seconds(trials) for s in searches),
        ratio=_finite(median / base_us) if math.isfinite(base_us) else None,
        spread=_finite((upper - lower) / median) if math.isfinite(median) else None,
        trials_to_near=_finite(near),
    )


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """First quartile, median and third quartile, with linear interpolation; infinite or not a
    number where searches without any success decide."""
    with np.errstate(invalid="ignore"):
        lower, median, upper = np.quantile(values, (0.25, 0.5, 0.75))
    return float(lower), float(median), float(upper)


def overall(rows: Sequence[Row], searches: Sequence[Search]) -> list[Overall]:
    """A line per policy and number of trials; then the best of the others on each operator."""
    goals = _goals(searches, max(row.trials for row in rows))
    found: list[Overall] = []
    policies = list(dict.fromkeys(row.policy for row in rows))
    for trials in dict.fromkeys(row.trials for row in rows):
        at = [row for row in rows if row.trials == trials]
        for policy in policies:
            own = [row for row in at if row.policy == policy]
            reached = [
                _within(s.trials_to(goals[s.job.op]), trials)
                for s in searches
                if s.job.policy == policy
            ]
            found.append(_overall(policy, trials, own, reached))
        if len(policies) > 1:
            found.append(Overall(BEST_OF_OTHERS, trials, _rivals(at, policies[0]), *3 * [None]))
    return found


def _overall(
    policy: str, trials: int, rows: Sequence[Row], trials_to_near: Sequence[float]
) -> Overall:
    spreads = [row.spread for row in rows if row.spread is not None]
    return Overall(
        policy,
        trials,
        geometric_mean([row.ratio for row in rows]),
        statistics.median(spreads) if spreads else None,
        sum(map(math.isfinite, trials_to_near)) / len(trials_to_near),
        _finite(statistics.median_high(trials_to_near)),
    )


def _rivals(rows: Sequence[Row], first: str) -> float | None:
    """Geometric mean over operators of the least ratio of the other policies."""
    by_op: dict[str, list[float]] = {row.op: [] for row in rows}
    for row in rows:
        if row.policy != first and row.ratio is not None:
            by_op[row.op].append(row.ratio)
    return geometric_mean([min(ratios, default=None) for ratios in by_op.values()])


def _goals(searches: Sequence[Search], trials: int) -> dict[str, float]:
    """For each operator, 5 % above the best of all searches."""
    goals: dict[str, float] = {}
    for search in searches:
        op, best = search.job.op, NEAR * search.best_us(trials)
        goals[op] = min(goals.get(op, math.inf), best)
    return goals


def geometric_mean(values: Sequence[float | None]) -> float | None:
    """None if a value is missing, or there are none."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return math.exp(statistics.fmean(map(math.log, known)))


def _within(trials: float, most: int) -> float:
    """The trials, infinite beyond a number."""
    return trials if trials <= most else math.inf


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
