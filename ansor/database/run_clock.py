"""The clock of a run, which can repeat the readings of an interrupted run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence


class RunClock:
    """Seconds that a run has taken, without interruptions.

    The clock of a resumed run first repeats the readings of the interrupted one. Then it does not
    advance until the first new measurement. The repetition therefore takes no time of the budget.

    Args:
        source: seconds; for a new run, this is the time of the run.
        readings: of the interrupted run, in order.
        spent_s: seconds of the interrupted run; None for a new run.

    Attributes:
        unwritten: readings that are in no database yet, by their number.
    """

    def __init__(
        self,
        source: Callable[[], float],
        readings: Sequence[float] = (),
        spent_s: float | None = None,
    ) -> None:
        self.unwritten: dict[int, float] = {}
        self._source = source
        self._readings = deque(readings)
        self._count = 0
        self._spent_s = spent_s
        self._ahead_s = 0.0  # of the source

    def __call__(self) -> float:
        """The next reading; the clock keeps it."""
        if self._readings:
            reading = self._readings.popleft()
        else:
            reading = self.unwritten[self._count] = self.now()
        self._count += 1
        return reading

    def now(self) -> float:
        """The time of the run, without a reading."""
        if self._spent_s is None:
            return self._source() + self._ahead_s
        return self._spent_s

    def go_on(self) -> None:
        """Lets the clock advance again, and forgets readings that were not repeated."""
        self._readings.clear()
        if self._spent_s is not None:
            self._ahead_s, self._spent_s = self._spent_s - self._source(), None
