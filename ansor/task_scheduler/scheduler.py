"""Chooses the task that gets the next round (Ansor §6).

Deviation: the paper has one definition for each task. Here variants of a function compete, and one
that is, or is expected to be, much slower than another gets no round. A task without a gain for
several rounds gets no further one under any objective; in the paper, this is a separate objective
(f4). Heavy functions get their first round first, because time may end before all had one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from ansor.config import SchedulerConfig
from ansor.task_scheduler.gradient import TaskProgress, gradient


class TaskScheduler:
    """Warm-up by round robin, then the steepest gradient of the objective (`objective.py`), now and
    then any task (ε-greedy)."""

    def __init__(self, config: SchedulerConfig, rng: np.random.Generator) -> None:
        self._config, self._rng = config, rng

    def choose(
        self, tasks: Sequence[TaskProgress], patience: int = 0, busy: Collection[int] = ()
    ) -> int | None:
        """Returns the number of the next task, None when no task has anything left to try.

        Args:
            tasks: the progress of each task.
            patience: rounds without a gain that every task has at least, whatever the config.
            busy: numbers of the tasks that have a round under way and are not chosen.
        """
        most = max(patience, self._config.patience)
        idle = [i for i in range(len(tasks)) if i not in busy]
        open_tasks = [i for i in idle if not self._is_over(tasks, i, most)]
        if not open_tasks:
            return None
        fresh = [i for i in open_tasks if tasks[i].rounds < self._config.warmup_rounds]
        if fresh:
            return min(fresh, key=lambda i: (tasks[i].rounds, *self._turn(tasks, i)))
        if self._rng.random() < self._config.eps_greedy:
            return int(self._rng.choice(open_tasks))
        failing = self._failing(tasks, open_tasks)
        if failing is not None:
            return failing
        working = [i for i in open_tasks if tasks[i].latency_s is not None]
        candidates = working or open_tasks
        return min(candidates, key=lambda i: (self._gain(tasks, i), i))

    @staticmethod
    def _turn(tasks: Sequence[TaskProgress], number: int) -> tuple[bool, float, int]:
        """Sort key of a task in the warm-up: the most promising variant comes before the others,
        and the heaviest function first. Time may end before all had their turn."""
        task, mates = tasks[number], _mates(tasks, tasks[number])
        flops = max(mate.flops for mate in mates)
        second = _promised_s(task) > min(map(_promised_s, mates))
        return second, -task.weight * flops, number

    def _gain(self, tasks: Sequence[TaskProgress], number: int) -> float:
        task = tasks[number]
        if task.latency_s is None:
            return 0.0
        similar = [t for i, t in enumerate(tasks) if i != number and t.tag == task.tag]
        behind = task.latency_s - min(_latencies(tasks, task), default=task.latency_s)
        # A gain of a variant counts only where it makes the variant the fastest.
        return gradient(task, similar, self._config) + task.weight * max(0.0, behind)

    def _is_over(self, tasks: Sequence[TaskProgress], number: int, patience: int) -> bool:
        """Whether a task gets no further round.

        Reasons are: no program is left, the objective does not depend on the task, the last rounds
        brought no gain, or another variant is, or promises to be, much faster.

        A promise is the best of a random sample, before any evolution. A variant that only promises
        the latency that another one has reached gets no round, unless the other one promised as
        little.
        """
        task = tasks[number]
        if task.exhausted or not task.weight:
            return True
        if task.latency_s is None and task.promised_s is None:
            return False
        if task.latency_s is None:
            rivals = [_promised_s(mate) for mate in _mates(tasks, task) if not _has_failed(mate)]
            least_s = min(rivals, default=_promised_s(task))
            done_s = min(_latencies(tasks, task), default=math.inf)
            begins_s = max(done_s * self._config.begin_margin, least_s * self._config.equal_margin)
            most_s = min(least_s * self._config.promise_margin, begins_s)
            return not task.rounds and _promised_s(task) > most_s
        if task.idle_rounds(self._config.min_gain) >= patience:
            return True
        best = min(_latencies(tasks, task), default=task.latency_s)
        return task.latency_s > best * self._config.variant_margin

    def _failing(self, tasks: Sequence[TaskProgress], open_tasks: Sequence[int]) -> int | None:
        """A task without a success that had fewer rounds than the average task, if there is one.

        Deviation: TVM's versions never try such a task again.
        """
        share = float(np.mean([task.rounds for task in tasks]))
        failed = [i for i in open_tasks if tasks[i].latency_s is None and tasks[i].rounds < share]
        return failed[0] if failed else None


def _promised_s(task: TaskProgress) -> float:
    """Seconds that a task promises; infinite if nothing is known, so that others come first."""
    return math.inf if task.promised_s is None else task.promised_s


def _has_failed(task: TaskProgress) -> bool:
    """Whether all rounds of a task failed so far."""
    return task.latency_s is None and bool(task.rounds or task.exhausted)


def _mates(tasks: Sequence[TaskProgress], task: TaskProgress) -> list[TaskProgress]:
    """All variants of a task's function, itself among them."""
    return [t for t in tasks if t is task or (task.group and t.group == task.group)]


def _latencies(tasks: Sequence[TaskProgress], task: TaskProgress) -> list[float]:
    """Seconds of all variants of a task's function that have been measured."""
    return [mate.latency_s for mate in _mates(tasks, task) if mate.latency_s is not None]
