"""Rounds under way: each is a batch of one task, and a task has one at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ansor.callbacks import Round, TaskStatus
from ansor.measure.batches import Batch, BatchQueue, MeasuredBatch
from ansor.measure.result import Measurement, checked
from ansor.policy.candidate import Candidate
from ansor.run.task_search import TaskSearch


@dataclass(frozen=True, eq=False)
class OpenRound:
    """A round under way.

    Attributes:
        search: of the task.
        candidates: the proposed programs.
        asked: programs that the policy was asked for.
    """

    search: TaskSearch
    candidates: Sequence[Candidate]
    asked: int


class Rounds:
    """Gives batches to a device and returns them with their measurements."""

    def __init__(self, queue: BatchQueue) -> None:
        self._queue = queue
        self._open: dict[str, OpenRound] = {}  # by the keys of the tasks

    @property
    def busy(self) -> frozenset[str]:
        """Keys of the tasks that have a round under way."""
        return frozenset(self._open)

    @property
    def has_place(self) -> bool:
        """Whether the device can measure one more batch at the same time."""
        return len(self._open) < self._queue.places

    @property
    def trials(self) -> int:
        """Programs under way."""
        return sum(len(each.candidates) for each in self._open.values())

    def begin(self, search: TaskSearch, candidates: Sequence[Candidate], asked: int) -> None:
        """Gives a batch to the device; an empty one is finished at once."""
        self._open[search.task.key] = OpenRound(search, candidates, asked)
        if candidates:
            programs = [candidate.program for candidate in candidates]
            self._queue.submit(Batch(search.task, programs, search.best_s))

    def finished(self) -> tuple[OpenRound, MeasuredBatch]:
        """Waits for a round to finish; a time that the machine cannot reach is a failure."""
        done = self._next()
        own = self._open.pop(done.batch.task.key)
        results = [checked(result, own.search.least_s) for result in done.results]
        return own, replace(done, results=results)

    def _next(self) -> MeasuredBatch:
        """The first empty batch, or else one that the device has measured."""
        for each in self._open.values():
            if not each.candidates:
                return MeasuredBatch(Batch(each.search.task, [], None), [])
        return self._queue.collect()

    def abandon(self) -> None:
        """Forgets all rounds under way."""
        self._queue.abandon()
        self._open.clear()


def event_of(
    results: Sequence[Measurement],
    task: TaskStatus,
    number: int,
    trials: int,
    elapsed_s: float,
    network_s: float | None,
) -> Round:
    """The event of a finished round, see `Round` for the arguments."""
    errors = [result for result in results if result.error is not None]
    return Round(
        number=number,
        task=task,
        measured=len(results),
        errors=Counter(e.error.value for e in errors if e.error is not None),
        first_error=errors[0].message if errors else "",
        trials=trials,
        elapsed_s=elapsed_s,
        network_s=network_s,
        current_s=min((r.latency_s for r in results if r.latency_s is not None), default=None),
    )
