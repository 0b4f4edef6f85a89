"""Divides the minutes of a run between the search and the steps after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansor.config import TuneConfig
from ansor.run.winners.choose import finish_seconds, num_leaders


@dataclass(frozen=True)
class TimePlan:
    """The time of one run.

    Attributes:
        minutes: for everything; None is no limit.
        clock: seconds since the run began.
        config: shares and rates.
        functions: of all networks.
        networks: of the run.
        candidates: of each network that are compiled and timed in the end.
    """

    minutes: float | None
    clock: Callable[[], float]
    config: TuneConfig
    functions: int
    networks: int
    candidates: int

    @property
    def leaders(self) -> int:
        """Programs of a function that are timed again at the end."""
        return num_leaders(self.minutes, self.functions, self.config)

    @property
    def left_s(self) -> float | None:
        """Seconds that remain after one candidate of each network is finished."""
        return None if self.minutes is None else self._seconds(self.minutes) - self._finish_s

    @property
    def search_s(self) -> float | None:
        """Seconds for the search, without those of the import and of the steps after it."""
        if self.minutes is None:
            return None
        left_s = self._seconds(self.minutes) - self.candidates * self._finish_s
        return max(left_s, self.config.least_search_s)

    @property
    def affordable(self) -> int | None:
        """Candidates of each network that the time is enough to finish; None is no limit."""
        if self.minutes is None:
            return None
        return max(1, int(self._seconds(self.minutes) / self._finish_s))

    @property
    def _finish_s(self) -> float:
        """Seconds that one candidate of each network takes after the search."""
        return finish_seconds(self.leaders, self.functions, self.config, self.networks)

    def _seconds(self, minutes: float) -> float:
        return minutes * 60 - self.clock()
