"""Rounds under way: each is a batch of one task, and a task has one at a time."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from ansor.callbacks import Round
from ansor.config import MeasureConfig
from ansor.database.journal import Journal
from ansor.measure.batches import Batch, BatchQueue
from ansor.measure.result import Measurement, checked
from ansor.policy.candidate import Candidate
from ansor.run.search.effort import Effort
from ansor.run.search.task_search import TaskSearch


@dataclass(eq=False)
class OpenRound:
    """A round under way.

    Attributes:
        search: of the task.
        candidates: the proposed programs.
        asked: number of requested programs.
        results: recorded measurements by the place of their program.
        recalled: of these, the measurements of an interrupted run.
        last: number of the last record of the interrupted run.
        submitted: places of the programs that the device measures at the moment.
        doubtful: measurements on a disturbed machine that may be made again.
        tries: number of repetitions so far.
    """

    search: TaskSearch
    candidates: Sequence[Candidate]
    asked: int
    results: dict[int, Measurement]
    recalled: int
    last: int
    submitted: Sequence[int] = ()
    doubtful: dict[int, Measurement] = field(default_factory=dict)
    tries: int = 0

    @property
    def best_s(self) -> float | None:
        """Seconds of the best program of the task, this round included."""
        own = (*self.results.values(), *self.doubtful.values())
        known = [self.search.best_s, *(result.latency_s for result in own)]
        return min((seconds for seconds in known if seconds is not None), default=None)


class Rounds:
    """Gives batches to a device and records the measurements.

    A measurement is recorded as soon as it is complete. Disturbed programs that may be among the
    best are measured again before. This is no further trial: a trial is a program.

    Args:
        queue: of the device.
        journal: of the run; measurements of an interrupted run are not repeated.
        seed: of the search.
        config: choice and number of the repeated measurements.
    """

    def __init__(
        self, queue: BatchQueue, journal: Journal, seed: int, config: MeasureConfig
    ) -> None:
        self._queue, self._journal, self._seed = queue, journal, seed
        self._config = config
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
        """Gives the programs of a batch that have no measurement to the device."""
        programs = [candidate.program for candidate in candidates]
        results, last = self._journal.recall(search.task, programs)
        own = OpenRound(search, candidates, asked, results, len(results), last)
        self._open[search.task.key] = own
        self._submit(own, [i for i in range(len(programs)) if i not in results])

    def _submit(self, own: OpenRound, places: Sequence[int]) -> None:
        own.submitted = places
        if places:
            programs = [own.candidates[place].program for place in places]
            take = partial(self._take, own)
            self._queue.submit(Batch(own.search.task, programs, own.best_s, take))

    @property
    def _waits(self) -> bool:
        """Whether all rounds wait for the device."""
        return all(each.submitted for each in self._open.values())

    def left_behind(self, searches: Sequence[TaskSearch]) -> list[tuple[TaskSearch, int]]:
        """Takes in measurements of an interrupted run that this run does not propose.

        The machine's parameters, a version or a policy may differ from those of that run. Nothing
        is taken in while this run repeats it.

        Returns:
            the searches that got records, and their number.
        """
        if not (self._waits and self._journal.is_repeating):
            return []
        left = self._journal.give_up([search.task.key for search in searches])
        counts = Counter(record.task_key for record in left)
        fed = [search for search in searches if search.task.key in counts]
        for search in fed:
            search.restore([record for record in left if record.task_key == search.task.key])
        return [(search, counts[search.task.key]) for search in fed]

    def finished(self) -> OpenRound:
        """Waits for a round to finish. Rounds that need no device come first, in the order of the
        interrupted run."""
        while self._waits:
            self._collect()
        done = [each for each in self._open.values() if not each.submitted]
        own = min(done, key=lambda each: each.last)
        self._journal.show(own.last)
        return self._open.pop(own.search.task.key)

    def _collect(self) -> None:
        """Waits for the next measured batch, and repeats some of its measurements."""
        self._journal.go_on()
        done = self._queue.collect()
        own = self._open[done.batch.task.key]
        for number, result in enumerate(done.results):
            self._take(own, number, result, done.host)
        again = [] if own.tries >= self._config.again_tries else self._suspects(own)
        for place in sorted(set(own.doubtful) - set(again)):
            self._keep(own, place, own.doubtful.pop(place), done.host)
        own.tries += 1
        self._submit(own, again)

    def _take(
        self, own: OpenRound, number: int, result: Measurement, host: str | None = None
    ) -> None:
        """Takes in a measurement, which the device may report twice. A time that the machine
        cannot reach is a failure.

        Args:
            own: the round.
            number: place of the program among those that were submitted.
            result: of the program.
            host: that measured it; None for this machine.
        """
        place = own.submitted[number]
        if place in own.results:
            return
        result = checked(result, own.search.least_s)
        if place in own.doubtful:
            result = _more_credible(own.doubtful[place], result)
        if self._may_be_better(own, result):
            own.doubtful[place] = result
        else:
            own.doubtful.pop(place, None)
            self._keep(own, place, result, host)

    def _may_be_better(self, own: OpenRound, result: Measurement) -> bool:
        """Whether a disturbed program may be among the best."""
        if result.latency_s is None or not result.disturbed:
            return False
        best_s = own.best_s
        return best_s is None or result.latency_s <= best_s * self._config.again_factor

    def _suspects(self, own: OpenRound) -> list[int]:
        """Places of the doubtful programs that are measured again, fastest first."""
        near = [
            (result.latency_s, place)
            for place, result in own.doubtful.items()
            if self._may_be_better(own, result)
        ]
        return [place for _, place in sorted(near)[: self._config.again_programs]]

    def _keep(self, own: OpenRound, place: int, result: Measurement, host: str | None) -> None:
        """Records a measurement."""
        program = own.candidates[place].program
        self._journal.add(own.search.task, program, result, self._seed, host)
        own.results[place] = result

    def abandon(self) -> list[OpenRound]:
        """Forgets all rounds under way; returns them with the results that are recorded."""
        self._queue.abandon()
        left = list(self._open.values())
        self._open.clear()
        return left


def _more_credible(first: Measurement, second: Measurement) -> Measurement:
    """The more credible of a disturbed and a later measurement of a program: an undisturbed one, or
    else the shorter one."""
    if second.latency_s is None or first.latency_s is None:
        return first
    is_better = not second.disturbed or second.latency_s < first.latency_s
    return second if is_better else first


def event_of(
    done: OpenRound, known: Collection[str], spent: Effort, network_s: float | None
) -> Round:
    """The event of a finished round.

    Args:
        done: the round.
        known: kinds of errors that earlier rounds had.
        spent: by the search, this round included.
        network_s: see `Round`.
    """
    results = [done.results[i] for i in sorted(done.results)]
    errors = [(r.error.value, r.message) for r in results if r.error is not None]
    first = dict(reversed(errors))
    speeds = [result.speed for result in results if result.speed is not None]
    return Round(
        number=spent.rounds,
        task=done.search.status,
        measured=len(results),
        errors=Counter(kind for kind, _ in errors),
        new_errors={kind: first[kind] for kind in first if kind not in known},
        trials=spent.trials,
        elapsed_s=spent.elapsed_s,
        network_s=network_s,
        current_s=min((r.latency_s for r in results if r.latency_s is not None), default=None),
        disturbed=sum(result.disturbed for result in results),
        speed=statistics.median(speeds) if speeds else None,
        recalled=done.recalled,
    )
