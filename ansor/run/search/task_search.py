"""One task in a run: its policy, its history of rounds, and its status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ansor.callbacks import TaskStatus
from ansor.config import MeasureConfig, SketchConfig
from ansor.database.database import Database
from ansor.database.journal import Journal
from ansor.database.record import Record
from ansor.measure.physical_limit import PeakTimes, least_seconds, peak_times
from ansor.measure.result import ErrorKind, Measurement
from ansor.policy.base import Policy
from ansor.policy.candidate import Candidate
from ansor.program.sketch import Sketch
from ansor.run.search.transfer import best_programs, similar_programs
from ansor.sketch.rule import Rule
from ansor.targets.machine import M
from ansor.targets.search import TargetSearch
from ansor.task import Task
from ansor.task_scheduler.gradient import TaskProgress, count_since_gain


def space_of(
    task: Task,
    search: TargetSearch[M],
    machine: M,
    config: SketchConfig,
    user_rules: Sequence[Rule[Any]],
) -> list[Sketch]:
    """The sketches of a task, or the knobs of the schedule that a user wrote for it."""
    if task.by_hand is not None:
        return [task.by_hand.sketch(task.dag)]
    return search.sketches(task.dag, machine, config, user_rules)


@dataclass(eq=False)
class TaskSearch:
    """A task, the policy that searches it, and its progress.

    A policy may propose fewer programs than requested, because it learns after each of its
    generations. A round ends when the requested number has been measured, so that rounds of all
    policies have equal weight.

    Attributes:
        task: the searched task.
        policy: proposes programs.
        least_s: seconds that no program of the task can fall below on the machine.
        peak: seconds of the task at the peaks of the machine.
        history: seconds of the best program after each round, None before the first success.
        trail: seconds of the best program before the search and after each of its trials.
        errors: programs that failed, by kind, earlier runs' records included.
    """

    task: Task
    policy: Policy
    least_s: float = 0.0
    peak: PeakTimes = field(default_factory=PeakTimes)
    history: list[float | None] = field(default_factory=list)
    trail: list[float | None] = field(default_factory=lambda: [None])
    errors: Counter[str] = field(default_factory=Counter)
    _measured: int = field(default=0, init=False)  # in the present round

    @classmethod
    def on(cls, machine: Any, config: MeasureConfig, task: Task, policy: Policy) -> TaskSearch:
        """The search of a task on a machine, before anything is measured."""
        peak = peak_times(task.dag, machine)
        return cls(task, policy, least_seconds(task.dag, machine, config), peak)

    @property
    def best_s(self) -> float | None:
        """Seconds of the best program."""
        return None if self.policy.best is None else self.policy.best.latency_s

    @property
    def promised_s(self) -> float | None:
        """Seconds that a random sample promises; None without a draft, as for a schedule that a
        user wrote."""
        return None if self.task.by_hand is not None else self.policy.promise_s

    @cached_property
    def drafted(self) -> Candidate | None:
        """The program that the draft prefers, for a task without measurements."""
        return self.policy.draft_best()

    def restore(self, records: Sequence[Record]) -> int:
        """Takes in records of the task; returns the number of those in its space.

        A program with a failed check counts as failed, even if it was fast.
        """
        wrong = [r.program for r in records if r.measurement.error is ErrorKind.WRONG]
        programs = [record.program for record in records]
        found = self.policy.restore(
            programs, [None if r.program in wrong else r.latency_s for r in records]
        )
        self._count(record.measurement for record in records)
        if self.best_s is not None:
            self.history.append(self.best_s)  # a task with records needs no first round
        self.trail[:] = [self.best_s]
        return found

    def seed(self, journal: Journal, earlier: Sequence[Database] = ()) -> int:
        """Lets the search begin with the best programs of earlier runs, for the task and for tasks
        of the same structure.

        Args:
            journal: of this run.
            earlier: records of earlier runs.
        """
        names = {sketch.name for sketch in self.policy.sketches}
        known = best_programs(self.task, earlier, self.policy.config.siblings)
        programs = [*known, *similar_programs(self.task, [journal, *earlier])]
        return self.policy.seed([program for program in programs if program.sketch in names])

    def learn(self, batch: Sequence[Candidate], results: Sequence[Measurement], asked: int) -> None:
        """Takes in the measurements of a batch of `asked` requested programs."""
        latency_s = [result.latency_s for result in results]
        self._count(results)
        self.policy.learn(batch, latency_s)
        self._measured += len(batch)
        if self._measured >= asked or self.policy.exhausted:
            self.history.append(self.best_s)
            self._measured = 0
        self.trail += running_best(self.trail[-1], latency_s)

    def _count(self, results: Iterable[Measurement]) -> None:
        self.errors.update(result.error.value for result in results if result.error is not None)

    def idle_trials(self, min_gain: float) -> int:
        """Trials since the best latency fell by a share of at least `min_gain`; all trials if none
        succeeded."""
        return count_since_gain(self.trail, min_gain)

    def progress(
        self, weight: float, promised_s: float | None = 0.0, has_ended: bool = False
    ) -> TaskProgress:
        """The progress for the scheduler.

        Args:
            weight: decrease of the objective by a second of the task.
            promised_s: expected seconds of a variant's best program.
            has_ended: whether the task may have no further round.
        """
        tag = "+".join(sorted({s.name.rstrip("0123456789") for s in self.task.dag.stages.values()}))
        return TaskProgress(
            weight=weight,
            flops=self.task.dag.flops,
            tag=tag,
            best_s=tuple(self.history),
            exhausted=self.policy.exhausted or has_ended,
            group=self.task.group,
            promised_s=promised_s,
        )

    @property
    def status(self) -> TaskStatus:
        """The status for callbacks and reports."""
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
            errors=dict(self.errors),
            compute_s=self.peak.compute_s,
            memory_s=self.peak.memory_s,
        )


def running_best(best_s: float | None, latency_s: Sequence[float | None]) -> Iterator[float | None]:
    """Seconds of the best program after each of some trials; None before the first success."""
    for seconds in latency_s:
        known = [each for each in (best_s, seconds) if each is not None]
        best_s = min(known, default=None)
        yield best_s
