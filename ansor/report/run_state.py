"""The state of a run as its events tell it, for a display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ansor.callbacks import Round, Start, TaskStatus


@dataclass(frozen=True)
class Gain:
    """The last improvement of a task's best program.

    Attributes:
        elapsed_s: seconds from the beginning of the run to the end of its round.
        share: of the latency that the task had before; None for the first latency.
    """

    elapsed_s: float
    share: float | None


@dataclass
class RunState:
    """The state of a run after its last event.

    Attributes:
        start: the beginning of the run.
        tasks: current status by name.
        gains: the last gain of each task that gained in this run.
        errors: programs of this run that failed, by task and kind.
        first_s: seconds of the network when each function first had a program; None until then.
        last: the last round.
    """

    start: Start
    tasks: dict[str, TaskStatus] = field(init=False)
    gains: dict[str, Gain] = field(default_factory=dict)
    errors: dict[str, Counter[str]] = field(default_factory=dict)
    first_s: float | None = field(init=False)
    last: Round | None = None

    def __post_init__(self) -> None:
        self.tasks = {task.name: task for task in self.start.tasks}
        self.first_s = network_seconds(self.start.tasks)

    def take(self, done: Round) -> None:
        """Takes in a round."""
        name = done.task.name
        before = self.tasks.get(name)
        gain = _gain(None if before is None else before.best_s, done)
        if gain is not None:
            self.gains[name] = gain
        self.tasks[name] = done.task
        self.errors.setdefault(name, Counter()).update(done.errors)
        self.first_s = done.network_s if self.first_s is None else self.first_s
        self.last = done

    @property
    def shares(self) -> dict[str, float]:
        """Share of each task in the time of all functions with a program.

        Only the fastest variant of a function takes a part.
        """
        winners = _winners(self.tasks.values())
        total = sum(task_seconds(task) for task in winners)
        return {task.name: task_seconds(task) / total for task in winners} if total else {}

    @property
    def ranked(self) -> list[TaskStatus]:
        """The tasks without a program, then those that take the most time."""
        return sorted(self.tasks.values(), key=task_seconds, reverse=True)

    @property
    def elapsed_s(self) -> float:
        """Seconds from the beginning of the run to the end of the last round."""
        return 0.0 if self.last is None else self.last.elapsed_s

    @property
    def trials(self) -> int:
        """Programs measured in this run."""
        return 0 if self.last is None else self.last.trials


def task_seconds(task: TaskStatus) -> float:
    """Seconds of all calls of a task in one run of the network; infinite without a program."""
    return float("inf") if task.best_s is None else task.weight * task.best_s


def network_seconds(tasks: Iterable[TaskStatus]) -> float | None:
    """Seconds of all functions together; None if one of them has no program, or there is none."""
    known = list(tasks)
    winners = _winners(known)
    if not winners or len(winners) < len({task.group or task.name for task in known}):
        return None
    return sum(map(task_seconds, winners))


def _winners(tasks: Iterable[TaskStatus]) -> list[TaskStatus]:
    """The fastest variant of each function that has a program."""
    found: dict[str, TaskStatus] = {}
    for task in tasks:
        name = task.group or task.name
        if task.best_s is not None and (
            name not in found or task_seconds(task) < task_seconds(found[name])
        ):
            found[name] = task
    return list(found.values())


def _gain(before_s: float | None, done: Round) -> Gain | None:
    best_s = done.task.best_s
    if best_s is None or (before_s is not None and best_s >= before_s):
        return None
    return Gain(done.elapsed_s, None if before_s is None else 1 - best_s / before_s)
