"""The speed of the machine over a run: work of known length beside each measurement.

A worker times the work around what it measures. The parent knows the times of all workers since the
run began, so a worker that has only seen a slow machine is noticed too.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ansor.measure.result import Measurement, Timing


class Drift:
    """Compares the times of the work with the shortest of them.

    Args:
        slower: how many times the shortest a time may be; beyond it, the machine is slow.
    """

    def __init__(self, slower: float) -> None:
        self._slower = slower
        self._best_s = math.inf

    def noted(self, measurement: Measurement, timing: Timing) -> Measurement:
        """A measurement with the speed of the machine; on a slow machine it is disturbed."""
        speed = self._speed(timing.reference_s)
        is_slow = speed is not None and speed * self._slower < 1
        return replace(measurement, disturbed=timing.disturbed or is_slow, speed=speed)

    def _speed(self, reference_s: float | None) -> float | None:
        if reference_s is None:
            return None
        self._best_s = min(self._best_s, reference_s)
        return self._best_s / reference_s
