"""Trials and seconds of a search, whole and in parts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ansor.callbacks import Finish
from ansor.run.search.task_limits import NO_LIMITS, TaskLimits

INTERRUPTED = "interrupted"  # reason of a search that Ctrl-C ended


@dataclass(frozen=True)
class Budget:
    """Limits of trials and seconds; the first that is reached ends the search. None is no limit.

    With limits of each task, the search also ends when all tasks have reached their limits.
    """

    trials: int | None = None
    seconds: float | None = None
    per_task: TaskLimits = NO_LIMITS

    @property
    def is_empty(self) -> bool:
        """Whether nothing may be measured."""
        unlimited = self.trials is None and self.seconds is None
        return self.trials == 0 or (unlimited and not self.per_task.end_search)

    def share(self, part: float) -> Budget:
        """A part of the budget, between 0 and 1."""
        trials = None if self.trials is None else round(self.trials * part)
        seconds = None if self.seconds is None else self.seconds * part
        return Budget(trials, seconds, self.per_task.share(part))

    def after(self, search: Finish) -> Budget:
        """The budget that a search has left; nothing after an interrupt."""
        if search.reason == INTERRUPTED:
            return NOTHING
        trials = None if self.trials is None else max(0, self.trials - search.trials)
        seconds = None if self.seconds is None else max(0.0, self.seconds - search.elapsed_s)
        return replace(self, trials=trials, seconds=seconds)


NOTHING = Budget(trials=0)


def together(first: Finish, last: Finish) -> Finish:
    """The end of two consecutive searches."""
    reason = first.reason if first.reason == INTERRUPTED else last.reason
    trials, elapsed_s = first.trials + last.trials, first.elapsed_s + last.elapsed_s
    is_complete = first.is_complete and last.is_complete
    errors = Counter(first.errors) + Counter(last.errors)
    return Finish(reason, last.tasks, trials, elapsed_s, is_complete, errors)
