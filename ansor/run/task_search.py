"""One task in a run: its policy, its history of rounds, its status for people and the scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ansor.callbacks import TaskStatus
from ansor.database.database import Database
from ansor.measure.result import ErrorKind
from ansor.policy.base import Policy
from ansor.policy.candidate import Candidate
from ansor.task import Task
from ansor.task_scheduler.gradient import TaskProgress


@dataclass(eq=False)
class TaskSearch:
    """A task, the policy that searches it, and the best latency after each round.

    A policy may propose fewer programs than it is asked for, because it learns after each of its
    generations. A round ends when as many have been measured, so that rounds of all policies count
    the same.
    """

    task: Task
    policy: Policy
    history: list[float | None] = field(default_factory=list)
    _measured: int = field(default=0, init=False)  # in the present round

    @property
    def best_s(self) -> float | None:
        """Seconds of the best program."""
        return None if self.policy.best is None else self.policy.best.latency_s

    @property
    def promised_s(self) -> float:
        """Seconds that a random sample promises."""
        return self.policy.promise_s

    @cached_property
    def drafted(self) -> Candidate | None:
        """What the draft prefers, for a task of which nothing is measured."""
        return self.policy.draft_best()

    def restore(self, database: Database) -> int:
        """Takes in the database's records of the task; returns how many.

        A program that was ever found wrong counts as failed, however fast it was.
        """
        records = database.records(self.task.key, self.task.target)
        wrong = [r.program for r in records if r.measurement.error is ErrorKind.WRONG]
        programs = [record.program for record in records]
        found = self.policy.restore(
            programs, [None if r.program in wrong else r.latency_s for r in records]
        )
        if self.best_s is not None:
            self.history.append(self.best_s)  # a task that is known needs no first round
        return found

    def seed(self, database: Database) -> int:
        """Lets the search begin with the best of tasks that have the same structure."""
        names = {sketch.name for sketch in self.policy.sketches}
        winners = database.winners(self.task.target, besides=self.task.key)
        return self.policy.seed([r.program for r in winners if r.program.sketch in names])

    def learn(
        self, batch: Sequence[Candidate], latency_s: Sequence[float | None], asked: int
    ) -> None:
        """Takes in the latencies of a batch, for which `asked` programs were asked for."""
        self.policy.learn(batch, latency_s)
        self._measured += len(batch)
        if self._measured >= asked or self.policy.exhausted:
            self.history.append(self.best_s)
            self._measured = 0

    def progress(self, weight: float, promised_s: float = 0.0) -> TaskProgress:
        """For the scheduler.

        Args:
            weight: what a second of the task is worth.
            promised_s: of a variant, what its best may take.
        """
        tag = "+".join(sorted({s.name.rstrip("0123456789") for s in self.task.dag.stages.values()}))
        return TaskProgress(
            weight=weight,
            flops=self.task.dag.flops,
            tag=tag,
            best_s=tuple(self.history),
            exhausted=self.policy.exhausted,
            group=self.task.group,
            promised_s=promised_s,
        )

    @property
    def status(self) -> TaskStatus:
        """For callbacks and reports."""
        task, best = self.task, self.policy.best
        return TaskStatus(
            name=task.name,
            key=task.key,
            weight=task.weight,
            flops=task.dag.flops,
            trials=self.policy.trials,
            best_s=self.best_s,
            sketch=None if best is None else best.sketch.name,
            group=task.group,
        )
