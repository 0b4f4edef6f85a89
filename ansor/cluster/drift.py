"""Nodes whose cores slow down: against their shortest time, and against the other nodes.

A node that was slow from its first measurement on has no shorter time to compare with, and a whole
group that slows down has no faster node. So both comparisons are made.
"""

from __future__ import annotations

import math
import statistics

from ansor.config import ClusterConfig


class Drift:
    """The times of the reference kernel on each node of a group."""

    def __init__(self, config: ClusterConfig) -> None:
        self._config = config
        self._best_s: dict[str, float] = {}
        self._last_s: dict[str, float] = {}

    def why_slow(self, node: str, seconds: float | None) -> str:
        """Takes in a time of a node; says why the node is too slow, or "".

        Args:
            node: its name.
            seconds: of the reference kernel; None where there is none.
        """
        if seconds is None:
            return ""
        self._best_s[node] = min(seconds, self._best_s.get(node, math.inf))
        self._last_s[node] = seconds
        own = seconds / self._best_s[node]
        if own > self._config.slower_than_best:
            return f"its reference kernel takes {own:.2f} times its shortest time"
        group = seconds / self._typical_s(seconds)
        if group > self._config.slower_than_group:
            return f"its reference kernel takes {group:.2f} times the median of the nodes"
        return ""

    def forget(self, node: str) -> None:
        """Drops the times of a node that is gone; as another process it may run elsewhere."""
        self._best_s.pop(node, None)
        self._last_s.pop(node, None)

    def _typical_s(self, own_s: float) -> float:
        """Median of the last times of all nodes; `own_s` while there are too few."""
        times = list(self._last_s.values())
        return statistics.median(times) if len(times) >= self._config.least_group else own_s
