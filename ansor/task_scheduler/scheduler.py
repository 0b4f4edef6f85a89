"""Chooses the task that gets the next round (Ansor §6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ansor.config import SchedulerConfig
from ansor.task_scheduler.gradient import TaskProgress, gradient


class TaskScheduler:
    """Warm-up by round robin, then the steepest gradient, now and then any task (ε-greedy).

    What the gradient is of, `objective.py` says.
    """

    def __init__(self, config: SchedulerConfig, rng: np.random.Generator) -> None:
        self._config, self._rng = config, rng

    def choose(self, tasks: Sequence[TaskProgress]) -> int | None:
        """Returns the number of the next task, None when no task has anything left to try."""
        open_tasks = [i for i in range(len(tasks)) if not self._is_over(tasks, i)]
        if not open_tasks:
            return None
        fresh = [i for i in open_tasks if tasks[i].rounds < self._config.warmup_rounds]
        if fresh:
            # The heaviest first: time may end before all had their turn.
            return min(fresh, key=lambda i: (tasks[i].rounds, -tasks[i].weight * tasks[i].flops, i))
        if self._rng.random() < self._config.eps_greedy:
            return int(self._rng.choice(open_tasks))
        failing = self._failing(tasks, open_tasks)
        if failing is not None:
            return failing
        working = [i for i in open_tasks if tasks[i].latency_s is not None]
        candidates = working or open_tasks
        return min(candidates, key=lambda i: (self._gain(tasks, i), i))

    def _gain(self, tasks: Sequence[TaskProgress], number: int) -> float:
        task = tasks[number]
        if task.latency_s is None:
            return 0.0
        similar = [t for i, t in enumerate(tasks) if i != number and t.tag == task.tag]
        behind = task.latency_s - min(_latencies(tasks, task), default=task.latency_s)
        # What a variant gains counts from where it overtakes the others.
        return gradient(task, similar, self._config) + task.weight * max(0.0, behind)

    def _is_over(self, tasks: Sequence[TaskProgress], number: int) -> bool:
        """Whether nothing is left to try, nothing would be won, nothing was gained for long, or
        another variant is so fast that it makes no sense."""
        task = tasks[number]
        if task.exhausted or not task.weight or task.latency_s is None:
            return task.exhausted or not task.weight
        if task.idle_rounds(self._config.min_gain) >= self._config.patience:
            return True
        best = min(_latencies(tasks, task), default=task.latency_s)
        return task.latency_s > best * self._config.variant_margin

    def _failing(self, tasks: Sequence[TaskProgress], open_tasks: Sequence[int]) -> int | None:
        """A task without any success, as long as it had less than its share of the rounds.

        Deviation: TVM's versions never try such a task again.
        """
        share = float(np.mean([task.rounds for task in tasks]))
        failed = [i for i in open_tasks if tasks[i].latency_s is None and tasks[i].rounds < share]
        return failed[0] if failed else None


def _latencies(tasks: Sequence[TaskProgress], task: TaskProgress) -> list[float]:
    """Seconds of all variants of a task that have been measured; nothing if it has none."""
    mates = [other for other in tasks if task.group and other.group == task.group]
    return [mate.latency_s for mate in mates if mate.latency_s is not None]
