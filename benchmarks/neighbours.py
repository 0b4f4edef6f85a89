"""Waits for moments in which all cores are near each other.

A host may move virtual cores, so that two of them share a cache only for seconds or minutes.
Without a shared cache, a transfer between cores takes five times as long, and programs of several
stages up to twice as long. Only the start of threads shows this, because it transfers a line in
both directions.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ansor.targets.cpu.detect import detect, start_meter_here
from ansor.targets.target import resolve_target

_FAR = 2.0  # times the least that threads have taken to start; near cores 1.0 to 1.5, others 3 to 5
_PAUSE_S = 0.2
_TURN_S = 10.0  # seconds that a turn waits, at most
_TOTAL_S = 45.0  # of all turns of an operator


class Neighbours:
    """Asks how long threads take to start.

    Args:
        start_s: starts them and returns the seconds of it.
        least_s: seconds of the fastest start, if they are known.

    Attributes:
        waited_s: seconds, altogether.
        far: turns that continued although cores were far apart.
    """

    def __init__(
        self,
        start_s: Callable[[], float],
        least_s: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._start_s, self._clock, self._sleep = start_s, clock, sleep
        self._least_s = min(least_s, start_s())
        self._left_s = _TOTAL_S
        self.waited_s, self.far = 0.0, 0

    def begin(self) -> None:
        """Allows the turns of another operator all of their time."""
        self._left_s = _TOTAL_S

    def wait(self) -> None:
        """Returns when the cores are near each other, or after a while."""
        began = self._clock()
        until = began + min(_TURN_S, self._left_s)
        while not (near := self._are_near()) and self._clock() < until:
            self._sleep(_PAUSE_S)
        passed = self._clock() - began
        self._left_s -= passed
        self.waited_s += passed
        self.far += not near

    def _are_near(self) -> bool:
        taken_s = self._start_s()
        self._least_s = min(self._least_s, taken_s)
        return taken_s <= _FAR * self._least_s


def neighbours_of(target: str, threads: int) -> Neighbours:
    """The neighbours of a number of threads of this process."""
    resolved = resolve_target(target)
    least_s = detect(resolved, threads).parallel_overhead_s
    return Neighbours(start_meter_here(resolved, threads), least_s)
