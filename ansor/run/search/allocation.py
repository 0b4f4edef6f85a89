"""Divides the budget of a search among its tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from ansor.config import TuneConfig
from ansor.run.search.budget import Budget
from ansor.run.search.effort import Effort
from ansor.run.search.rounds import Rounds
from ansor.run.search.task_search import TaskSearch
from ansor.task_scheduler.gradient import TaskProgress
from ansor.task_scheduler.networks import Networks
from ansor.task_scheduler.scheduler import TaskScheduler

NO_GAIN = "no function gained anything in its last rounds"
OBJECTIVE_MET = "the objective asks for nothing more"
LIMITS_MET = "each task has reached its limits or promises no gain"


class Allocation:
    """Chooses the task of the next round, and the size of its batch.

    Args:
        searches: of all tasks.
        networks: number of calls of each function in each network, and the objective.
        chosen: names of the functions to tune; other functions are not measured.
        config: of the scheduler, and the size of a full batch.
        effort: spent trials and seconds of the search.
        rounds: the rounds under way.
        rng: of the scheduler.
    """

    def __init__(
        self,
        searches: Sequence[TaskSearch],
        networks: Networks,
        chosen: Collection[str],
        config: TuneConfig,
        effort: Effort,
        rounds: Rounds,
        rng: np.random.Generator,
    ) -> None:
        self._searches, self._networks = searches, networks
        self._effort, self._rounds = effort, rounds
        self._chosen = frozenset(chosen)
        self._variants = Counter(search.task.group for search in searches)
        self._scheduler, self._batch = TaskScheduler(config.scheduler, rng), config.evolution.batch
        self._config = config.scheduler

    @property
    def _begun(self) -> int:
        """Programs measured or under way."""
        return self._effort.trials + self._rounds.trials

    def choose(self, budget: Budget) -> tuple[TaskSearch | None, str]:
        """The task of the next round, or None and the reason why no further round may begin."""
        if budget.trials is not None and self._begun >= budget.trials:
            return None, "all trials spent"
        if budget.seconds is not None and self._effort.elapsed_s >= budget.seconds:
            return None, "time is up"
        progress = self._progress(budget)
        busy = [i for i, x in enumerate(self._searches) if x.task.key in self._rounds.busy]
        number = self._scheduler.choose(progress, budget.per_task.early_stopping or 0, busy)
        if number is None:
            return None, self._why_over(progress, budget)
        return self._searches[number], ""

    def batch_size(self, search: TaskSearch, budget: Budget) -> int:
        """A full batch, or a smaller one if trials or time are short for all tasks."""
        left = self._left(search, budget)
        batch = self._batch if left is None else min(self._batch, left)
        if budget.seconds is not None:
            affordable = self._affordable(budget.seconds - self._effort.elapsed_s)
            batch = min(batch, max(self._config.least_batch, affordable))
        if budget.trials is None:
            return batch
        tuned = sum(map(self._is_chosen, self._searches))
        share = max(1, budget.trials // tuned)
        return min(batch, share, budget.trials - self._begun)

    def _affordable(self, spare_s: float) -> int:
        """Trials for each function without a round, within the first part of the time."""
        cost_s, busy = self._effort.trial_s or self._config.trial_s, self._rounds.busy
        begun = {x.task.group for x in self._searches if x.history or x.task.key in busy}
        fresh = len(self._chosen - begun)
        return int(spare_s * self._config.warmup_share / cost_s / max(fresh, 1))

    def _progress(self, budget: Budget) -> list[TaskProgress]:
        """The progress of each task, and its weight in the objective."""
        begun = [bool(search.history) or not self._is_chosen(search) for search in self._searches]
        weights = self._networks.weights([search.best_s for search in self._searches], begun)
        return [
            search.progress(
                float(weight), self._promised_s(search), self._has_ended(search, budget)
            )
            for search, weight in zip(self._searches, weights, strict=True)
        ]

    def _is_chosen(self, search: TaskSearch) -> bool:
        return search.task.group in self._chosen

    def _has_ended(self, search: TaskSearch, budget: Budget) -> bool:
        """Whether the limits of a task allow no further round."""
        return not self._is_chosen(search) or self._left(search, budget) == 0

    def _left(self, search: TaskSearch, budget: Budget) -> int | None:
        """Programs of a task that may be measured; None is no limit."""
        idle = search.idle_trials(self._config.min_gain)
        return budget.per_task.left(self._effort.of_tasks[search.task.key], idle)

    def _promised_s(self, search: TaskSearch) -> float | None:
        """The promise of a task, if there are other variants."""
        return 0.0 if self._variants[search.task.group] == 1 else search.promised_s

    def _why_over(self, tasks: Sequence[TaskProgress], budget: Budget) -> str:
        """The reason why the scheduler chose no task."""
        left = [task for task in tasks if not task.exhausted]
        if not any(task.weight for task in tasks) and left:
            return OBJECTIVE_MET
        chosen = [search for search in self._searches if self._is_chosen(search)]
        if any(self._left(search, budget) == 0 for search in chosen):
            return LIMITS_MET
        return NO_GAIN if any(task.weight for task in left) else "nothing left to try"
