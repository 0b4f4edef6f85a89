"""Measures one batch of programs of one task: build on all workers, then time one by one."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from ansor.measure.device import OnResult
from ansor.measure.local.worker_pool import Pool
from ansor.measure.local.worker_process import Outcome, WorkerFailure, WorkerProcess
from ansor.measure.protocol import Define, Time
from ansor.measure.result import Measurement, Timing, successful_measurement
from ansor.program.program import Program


@dataclass(frozen=True)
class RemoteProgram:
    """A program that a worker keeps, and the seconds that building it took."""

    worker: WorkerProcess
    slot: int
    seconds: float


def build_all(
    pool: Pool, task: Define, programs: Mapping[int, Program]
) -> dict[int, RemoteProgram | Outcome]:
    """Builds programs on all workers. Returns, under the same numbers, where they are kept or how
    they failed. No worker is busy at the end, so that the next timing is not disturbed."""
    slots: dict[int, int] = {}

    def start(number: int, worker: WorkerProcess) -> None:
        slots[number] = pool.send_build(worker, task, programs[number])

    ended = pool.spread({number: partial(start, number) for number in programs})
    pool.settle()
    return {
        number: outcome
        if isinstance(outcome, WorkerFailure) or outcome.error is not None
        else RemoteProgram(worker, slots[number], outcome.seconds)
        for number, (worker, outcome) in ended.items()
    }


def measure_batch(
    pool: Pool,
    task: Define,
    programs: Sequence[Program],
    best_s: float | None,
    on_result: OnResult,
) -> list[Measurement]:
    """Builds and times programs; see `Device.measure`."""
    batch = _Batch(pool, task, programs, best_s, on_result)
    while len(batch.results) < len(programs):
        batch.turn()
    return [batch.results[i] for i in range(len(programs))]


class _Batch:
    """The state of a batch; programs are known by their index. Each turn finishes at least one
    program. Programs that are lost with a worker are built again in the next turn."""

    def __init__(
        self,
        pool: Pool,
        task: Define,
        programs: Sequence[Program],
        best_s: float | None,
        on_result: OnResult,
    ) -> None:
        self.results: dict[int, Measurement] = {}
        self._pool = pool
        self._task = task
        self._programs = programs
        self._best_s = math.inf if best_s is None else best_s
        self._on_result = on_result

    def turn(self) -> None:
        """Builds the programs without a result, then times them, one program at a time in a lane.

        Workers take turns: the threads of a kernel spin for a while after its end and would disturb
        the kernel of another worker.
        """
        left = {i: p for i, p in enumerate(self._programs) if i not in self.results}
        built: list[tuple[int, RemoteProgram]] = []
        for i, outcome in build_all(self._pool, self._task, left).items():
            if isinstance(outcome, RemoteProgram):
                built.append((i, outcome))
            else:
                self._fail(i, outcome, 0.0)
        queues: dict[int, deque[tuple[int, RemoteProgram]]] = defaultdict(deque)
        for worker in self._pool.workers:
            entries = [(i, entry) for i, entry in built if entry.worker is worker]
            queues[self._pool.lane_of(worker)].extend(entries)
        self._time(queues)

    def _time(self, queues: Mapping[int, deque[tuple[int, RemoteProgram]]]) -> None:
        """Times the built programs, one at a time in each lane."""
        under_way: dict[WorkerProcess, tuple[int, int, RemoteProgram]] = {}
        while True:
            busy = {lane for lane, _, _ in under_way.values()}
            for lane in queues.keys() - busy:
                if (found := self._next(queues[lane])) is not None:
                    under_way[found[1].worker] = (lane, *found)
            if not under_way:
                return
            for worker, outcome in self._pool.wait(list(under_way)):
                _, i, entry = under_way.pop(worker)
                self._take(i, entry, outcome)

    def _next(self, queue: deque[tuple[int, RemoteProgram]]) -> tuple[int, RemoteProgram] | None:
        """Starts to time the next program whose worker is alive."""
        while queue:
            i, built = queue.popleft()
            if built.worker in self._pool.workers:
                built.worker.send(Time(built.slot, self._best_s), self._pool.config.run_timeout_s)
                return i, built
        return None

    def _take(self, i: int, built: RemoteProgram, outcome: Outcome) -> None:
        """Registers the outcome of timing a program."""
        if isinstance(outcome, WorkerFailure) or outcome.error is not None:
            self._fail(i, outcome, built.seconds)
            if built.worker in self._pool.workers and not self._pool.on_host:
                # An error of a device may persist: no other program runs in that process.
                self._pool.replace(built.worker)
            return
        timing = cast(Timing, outcome.value)
        found = successful_measurement(timing.latencies_s, built.seconds, outcome.seconds)
        result = self._pool.drift.noted(found, timing)
        self._best_s = min(self._best_s, result.latency_s or math.inf)
        self._note(i, result)

    def _fail(self, i: int, outcome: Outcome, build_s: float) -> None:
        kind = outcome.kind if isinstance(outcome, WorkerFailure) else outcome.error
        self._note(i, Measurement(error=kind, message=outcome.message, build_s=build_s))

    def _note(self, i: int, result: Measurement) -> None:
        self.results[i] = result
        self._on_result(i, result)
