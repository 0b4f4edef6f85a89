"""Rounds under way: each is a batch of one task, and a task has one at a time."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ansor.callbacks import Round, TaskStatus
from ansor.config import MeasureConfig
from ansor.measure.batches import Batch, BatchQueue, MeasuredBatch
from ansor.measure.result import Measurement, checked
from ansor.policy.candidate import Candidate
from ansor.run.task_search import TaskSearch


@dataclass(eq=False)
class OpenRound:
    """A round under way.

    Attributes:
        search: of the task.
        candidates: the proposed programs.
        asked: programs that the policy was asked for.
        measured: of all candidates; None before the first answer.
        again: numbers of the candidates that are measured again at the moment.
        tries: how often some have been measured again.
    """

    search: TaskSearch
    candidates: Sequence[Candidate]
    asked: int
    measured: MeasuredBatch | None = None
    again: Sequence[int] = ()
    tries: int = 0


class Rounds:
    """Gives batches to a device and returns them with their measurements.

    What was measured on a disturbed machine and may be among the best is measured again before
    anyone learns of it. This is no further trial: a trial is a program.

    Args:
        queue: of the device.
        config: how often, and which programs.
    """

    def __init__(self, queue: BatchQueue, config: MeasureConfig) -> None:
        self._queue, self._config = queue, config
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
            self._submit(search, candidates)

    def _submit(self, search: TaskSearch, candidates: Sequence[Candidate]) -> None:
        programs = [candidate.program for candidate in candidates]
        self._queue.submit(Batch(search.task, programs, search.best_s))

    def finished(self) -> tuple[OpenRound, MeasuredBatch]:
        """Waits for a round to finish; a time that the machine cannot reach is a failure."""
        while True:
            done = self._next()
            own = self._open[done.batch.task.key]
            measured = own.measured = _joined(own, done)
            own.again = self._suspects(own, measured.results)
            if not own.again:
                del self._open[done.batch.task.key]
                return own, measured
            own.tries += 1
            self._submit(own.search, [own.candidates[number] for number in own.again])

    def _suspects(self, own: OpenRound, results: Sequence[Measurement]) -> list[int]:
        """Numbers of the disturbed programs that may be faster than the best, fastest first."""
        config, times = self._config, dict(enumerate(result.latency_s for result in results))
        known = [seconds for seconds in (*times.values(), own.search.best_s) if seconds is not None]
        if own.tries >= config.again_tries or not known:
            return []
        limit_s = min(known) * config.again_factor
        near = [
            (seconds, number)
            for number, seconds in times.items()
            if seconds is not None and seconds <= limit_s and results[number].disturbed
        ]
        return [number for _, number in sorted(near)[: config.again_programs]]

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


def _joined(own: OpenRound, done: MeasuredBatch) -> MeasuredBatch:
    """All measurements of a round: the first ones, or better ones that have come later."""
    fresh = [checked(result, own.search.least_s) for result in done.results]
    if own.measured is None:
        return replace(done, results=fresh)
    results = list(own.measured.results)
    for number, result in zip(own.again, fresh, strict=True):
        results[number] = _more_credible(results[number], result)
    return replace(own.measured, results=results)


def _more_credible(first: Measurement, second: Measurement) -> Measurement:
    """Of a disturbed measurement and a later one of the same program: an undisturbed one, or else
    the shorter one."""
    if second.latency_s is None or first.latency_s is None:
        return first
    is_better = not second.disturbed or second.latency_s < first.latency_s
    return second if is_better else first


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
    speeds = [result.speed for result in results if result.speed is not None]
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
        disturbed=sum(result.disturbed for result in results),
        speed=statistics.median(speeds) if speeds else None,
    )
