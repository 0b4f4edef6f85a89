"""Objectives: functions of the latencies of networks, to be minimised (Ansor §6.3, Table 2).

The scheduler sees only the slopes of an objective: its change with a second of each network.

Deviation: the paper differentiates its objectives. Here slopes are numeric, so that a user's
objective may be any function. The paper's f4, early stopping, is no objective here: a task without
a gain gets no further round under any objective (`SchedulerConfig.patience`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.config import SchedulerConfig
from ansor.errors import ArgumentError

Seconds = npt.NDArray[np.float64]
Objective = Callable[[Seconds], float]  # seconds of each network -> number to be minimised


def total_latency(latency_s: Seconds) -> float:
    """The sum over the networks (f1).

    Args:
        latency_s: `[N] float64`, seconds of N networks.
    """
    return float(latency_s.sum())


@dataclass(frozen=True)
class LatencyRequirement:
    """Networks that are fast enough need no more time (f2).

    Attributes:
        seconds: limit of a network's latency, one number for all networks or one for each.
    """

    seconds: float | Sequence[float]

    def __post_init__(self) -> None:
        _check_positive("seconds", self.seconds)

    def __call__(self, latency_s: Seconds) -> float:
        """Sum over the networks; a latency below its limit counts as the limit."""
        _check_length("seconds", self.seconds, latency_s)
        return float(np.maximum(latency_s, self.seconds).sum())


@dataclass(frozen=True)
class GeometricSpeedup:
    """The geometric mean of speedups over references (f3), negated.

    Attributes:
        reference_s: reference seconds of each network, such as those of another system.
    """

    reference_s: Sequence[float]

    def __post_init__(self) -> None:
        _check_positive("reference_s", self.reference_s)

    def __call__(self, latency_s: Seconds) -> float:
        """The mean, negated: faster is less."""
        _check_length("reference_s", self.reference_s, latency_s)
        speedups = np.asarray(self.reference_s, dtype=np.float64) / latency_s
        return -float(np.exp(np.log(speedups).mean()))


def slopes(
    objective: Objective, latency_s: Seconds, step: float = SchedulerConfig.slope_step
) -> Seconds:
    """Change of the objective by a second of each network's latency, as it becomes faster.

    The difference quotient exists for any function, even where it has a corner. If no network
    alone has a slope, but all together have (the maximum of equal latencies), each slope is 1.

    Args:
        step: decrease for the quotient, as a share of the latency.

    Raises:
        ArgumentError: the objective fails, is no finite number, or grows when a network becomes
            faster.
    """
    tuned = latency_s > 0  # a network without functions to tune takes no part
    latency_s = np.where(tuned, latency_s, 1.0)
    here = _value(objective, latency_s)
    found = np.zeros(len(latency_s))
    for i in np.flatnonzero(tuned):
        faster = latency_s.copy()
        faster[i] *= 1 - step
        found[i] = (here - _value(objective, faster)) / (step * latency_s[i])
    if not found.any() and _value(objective, latency_s * np.where(tuned, 1 - step, 1.0)) < here:
        return tuned.astype(np.float64)
    if found.min() < 0:
        remedy = "must not grow when a network becomes faster; it is made as small as possible"
        raise ArgumentError("objective", objective, remedy)
    return found


def _value(objective: Objective, latency_s: Seconds) -> float:
    try:
        value = float(objective(latency_s.copy()))
    except Exception as error:
        remedy = f"must take an array of {len(latency_s)} latencies in seconds: {error}"
        raise ArgumentError("objective", objective, remedy) from error
    if not math.isfinite(value):
        remedy = f"must be a finite number; it is {value} for latencies of {latency_s.tolist()} s"
        raise ArgumentError("objective", objective, remedy)
    return value


def _check_length(name: str, value: float | Sequence[float], latency_s: Seconds) -> None:
    if np.ndim(value) and len(np.asarray(value)) != len(latency_s):
        raise ValueError(f"{name} has {len(np.asarray(value))} numbers")


def _check_positive(name: str, value: float | Sequence[float]) -> None:
    numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if not (numbers.size and np.isfinite(numbers).all() and (numbers > 0).all()):
        raise ArgumentError(name, value, "must be positive seconds")
