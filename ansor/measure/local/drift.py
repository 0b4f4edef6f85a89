"""The speed of the machine over a run, by a reference beside each measurement.

A worker times the reference around each measurement. The parent has the times of all workers since
the start of the run. So it also detects a worker that has only measured on a slow machine.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ansor.measure.result import Measurement, Timing


class Drift:
    """Compares the times of the reference with the shortest of them.

    Args:
        slower: ratio to the shortest time above which the machine is slow.
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
