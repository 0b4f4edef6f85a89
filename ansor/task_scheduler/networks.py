"""Latencies of networks, as sums over tasks, and the weight of each task in the objective."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ansor.task_scheduler.objective import (
    GeometricSpeedup,
    LatencyRequirement,
    Objective,
    Seconds,
    slopes,
)


class Networks:
    """One or several networks that call the same tasks.

    Args:
        calls: `[networks, tasks]`, number of calls of each task in each network.
        groups: of each task; tasks of the same group are variants, and the fastest counts.
        objective: a function of the networks' latencies, to be minimised.
    """

    def __init__(
        self, calls: npt.NDArray[np.int64], groups: Sequence[str], objective: Objective
    ) -> None:
        functions = list(dict.fromkeys(groups))
        self._calls, self._objective = calls, objective
        self._group = np.array([functions.index(group) for group in groups], dtype=int)
        first = np.array([groups.index(group) for group in functions], dtype=int)
        self._calls_of_groups = calls[:, first]

    @property
    def goal_s(self) -> float | None:
        """Total seconds of the networks at which the objective is met; None if it has no limit."""
        given = self._objective
        return self._sum(given.seconds) if isinstance(given, LatencyRequirement) else None

    @property
    def reference_s(self) -> float | None:
        """Total seconds of the references, if the objective compares with references."""
        given = self._objective
        return self._sum(given.reference_s) if isinstance(given, GeometricSpeedup) else None

    def _sum(self, seconds: float | Sequence[float]) -> float:
        """The sum over the networks of a number for each, or of one number for all."""
        return float(np.broadcast_to(seconds, len(self._calls)).sum())

    def latency_s(self, best_s: Sequence[float | None]) -> Seconds | None:
        """Seconds of each network; None until each function has a program.

        Args:
            best_s: of each task, None before its first success.
        """
        groups = self._fastest(best_s)
        return self._calls_of_groups @ groups if np.isfinite(groups).all() else None

    def weights(
        self, best_s: Sequence[float | None], begun: Sequence[bool]
    ) -> npt.NDArray[np.float64]:
        """Decrease of the objective for each second that a task becomes faster.

        A function whose programs all failed counts as 0 seconds, so that the objective holds for
        the other functions. All weights are equal until every function has begun, and for a network
        without any working program.
        """
        groups = self._fastest(best_s)
        tried = np.zeros(len(groups), dtype=bool)
        tried[self._group[np.flatnonzero(begun)]] = True
        groups[tried & np.isinf(groups)] = 0.0
        worth = np.ones(len(self._calls))
        if np.isfinite(groups).all():
            seconds = self._calls_of_groups @ groups
            worth = np.where(seconds > 0, slopes(self._objective, seconds), worth)
        return worth @ self._calls

    def _fastest(self, best_s: Sequence[float | None]) -> Seconds:
        """Seconds of each group; infinite if none of its tasks has a program."""
        found = np.full(self._calls_of_groups.shape[1], np.inf)
        latency_s = np.array(
            [np.inf if best is None else best for best in best_s], dtype=np.float64
        )
        np.minimum.at(found, self._group, latency_s)
        return found
