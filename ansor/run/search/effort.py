"""The spent trials and time of a search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable


class Effort:
    """Counts the trials, the rounds and the seconds of one search.

    Attributes:
        trials: programs measured.
        rounds: rounds that have ended.
        rounds_s: their seconds, without the start of the search.
        of_tasks: by key, programs of each task that the whole run has measured.

    Args:
        clock: seconds.
        of_tasks: numbers of programs that earlier searches of the run have measured; updated.
    """

    def __init__(self, clock: Callable[[], float], of_tasks: Counter[str]) -> None:
        self.trials, self.rounds, self.rounds_s = 0, 0, 0.0
        self.of_tasks, self._clock = of_tasks, clock
        self._began = self._last_s = clock()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the search began."""
        return self._clock() - self._began

    @property
    def trial_s(self) -> float | None:
        """Mean seconds of a trial; None before the first one."""
        return self.rounds_s / self.trials if self.trials else None

    def begin_rounds(self) -> None:
        """Starts to count the time of rounds."""
        self._last_s = self._clock()

    def end_round(self) -> None:
        """Counts a round, and the time since the last one."""
        now_s = self._clock()
        self.rounds += 1
        self.rounds_s, self._last_s = self.rounds_s + now_s - self._last_s, now_s

    def count(self, key: str, trials: int) -> None:
        """Counts measured programs of a task."""
        self.trials += trials
        self.of_tasks[key] += trials
