"""How well scores rank programs: higher scores ought to go with lower latencies."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.floating]


def spearman(scores: Values, latency_s: Values) -> float:
    """Rank correlation of score and speed: 1 for the right order, -1 for the reverse.

    0 where one of the two is the same everywhere.
    """
    predicted, actual = _ranks(scores), _ranks(-latency_s)
    if predicted.std() == 0 or actual.std() == 0:
        return 0.0
    return float(np.corrcoef(predicted, actual)[0, 1])


def pairwise(scores: Values, latency_s: Values) -> float:
    """Share of the pairs of different latency whose faster program has the higher score.

    Equal scores count as half right; NaN where there is no such pair.
    """
    faster = latency_s[:, None] < latency_s[None]
    above = np.sign(scores[:, None].astype(np.float64) - scores[None])
    return float((0.5 + 0.5 * above[faster]).mean()) if faster.any() else float("nan")


def recall(scores: Values, latency_s: Values, k: int) -> float:
    """Share of the `k` fastest programs that are among the `k` with the highest scores."""
    found = np.intersect1d(top(-scores, k), top(latency_s, k))
    return len(found) / min(k, len(scores))


def best_of_top(scores: Values, latency_s: Values, k: int) -> float:
    """Latency of the fastest of the `k` with the highest scores, over that of the fastest."""
    return float(latency_s[top(-scores, k)].min() / latency_s.min())


def top(values: Values, k: int) -> npt.NDArray[np.intp]:
    """Positions of the `k` smallest, the smallest first."""
    return np.argsort(values, kind="stable")[:k]


def _ranks(values: Values) -> npt.NDArray[np.float64]:
    """Rank of each value; equal values share the mean of theirs."""
    _, group, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    mean: npt.NDArray[np.float64] = last - (count - 1) / 2
    return mean[group]
