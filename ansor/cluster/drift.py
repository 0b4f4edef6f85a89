"""Detects slow nodes by their own shortest time, and by the times of the other nodes.

A node that is slow from its first measurement on has no shorter time, and a group that slows down
as a whole has no faster node. So both comparisons are necessary.
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
        """Takes in a time of a node; returns the reason why the node is too slow, or "".

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
        """Drops the times of a lost node, which may come back as a process on another machine."""
        self._best_s.pop(node, None)
        self._last_s.pop(node, None)

    def _typical_s(self, own_s: float) -> float:
        """Median of the last times of all nodes; `own_s` while there are too few."""
        times = list(self._last_s.values())
        return statistics.median(times) if len(times) >= self._config.least_group else own_s
