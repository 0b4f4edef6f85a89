"""Limits of the search of one task, beside the budget of the whole run."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class TaskLimits:
    """Limits of each task; None is no limit.

    Attributes:
        trials: programs of a task to measure in a run.
        early_stopping: trials of a task without a gain after which its search ends.
    """

    trials: int | None = None
    early_stopping: int | None = None

    @property
    def end_search(self) -> bool:
        """Whether there is a limit, so that a search ends without a budget of the run."""
        return self.trials is not None or self.early_stopping is not None

    def left(self, measured: int, idle: int) -> int | None:
        """Programs of a task that may be measured; None is no limit.

        Args:
            measured: programs of the task that this run has measured.
            idle: of these, the programs after the last gain.
        """
        pairs = ((self.trials, measured), (self.early_stopping, idle))
        left = [limit - used for limit, used in pairs if limit is not None]
        return max(0, min(left)) if left else None

    def share(self, part: float) -> TaskLimits:
        """The limits of a part of a run, between 0 and 1; at least one trial."""
        trials = None if self.trials is None else max(1, round(self.trials * part))
        return replace(self, trials=trials)


NO_LIMITS = TaskLimits()
