"""How the latencies of tasks add up to those of networks, and what a second of each is worth."""

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
        calls: `[networks, tasks]`, how often each network runs each task.
        groups: of each task; tasks of the same group are variants, of which the fastest counts.
        objective: of the networks' latencies, to become small.
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
        """Seconds of all networks together at which the objective asks for nothing more."""
        given = self._objective
        return self._sum(given.seconds) if isinstance(given, LatencyRequirement) else None

    @property
    def reference_s(self) -> float | None:
        """Seconds that the networks take elsewhere, together, if the objective compares them."""
        given = self._objective
        return self._sum(given.reference_s) if isinstance(given, GeometricSpeedup) else None

    def _sum(self, seconds: float | Sequence[float]) -> float:
        """Of a number for each network, or of one for all."""
        return float(np.broadcast_to(seconds, len(self._calls)).sum())

    def latency_s(self, best_s: Sequence[float | None]) -> Seconds | None:
        """Seconds of each network, the sum of its functions; None until each function has some.

        Args:
            best_s: of each task, None before its first success.
        """
        groups = self._fastest(best_s)
        return self._calls_of_groups @ groups if np.isfinite(groups).all() else None

    def weights(
        self, best_s: Sequence[float | None], begun: Sequence[bool]
    ) -> npt.NDArray[np.float64]:
        """What a second of each task is worth to the objective.

        A function that has begun, in vain so far, counts as nothing, so that the objective holds
        for all else. Until every function has begun, and for a network of which nothing works,
        each second counts the same.
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
        """Seconds of each group, infinite where none of its tasks has any."""
        found = np.full(self._calls_of_groups.shape[1], np.inf)
        latency_s = np.array(
            [np.inf if best is None else best for best in best_s], dtype=np.float64
        )
        np.minimum.at(found, self._group, latency_s)
        return found
