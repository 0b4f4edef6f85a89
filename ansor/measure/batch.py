"""Measures one batch of programs of one task: build on all workers, then time one by one."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import cast

from ansor.measure.pool import Outcome, Pool
from ansor.measure.process import WorkerFailure, WorkerProcess
from ansor.measure.protocol import Define, Time
from ansor.measure.result import Measurement, measured
from ansor.program.program import Program


def measure_batch(
    pool: Pool, task: Define, programs: Sequence[Program], best_s: float | None
) -> list[Measurement]:
    """Builds and times programs; see `Device.measure`."""
    pool.recycle()
    batch = _Batch(pool, task, programs, best_s)
    while len(batch.results) < len(programs):
        batch.build()
        batch.time()
    return [batch.results[i] for i in range(len(programs))]


class _Batch:
    """Programs are known by their index. Each turn of `build` and `time` finishes at least one:
    what a dying worker took with it is built again in the next turn."""

    def __init__(
        self, pool: Pool, task: Define, programs: Sequence[Program], best_s: float | None
    ) -> None:
        self.results: dict[int, Measurement] = {}
        self._pool = pool
        self._task = task
        self._programs = programs
        self._best_s = math.inf if best_s is None else best_s
        self._built: dict[int, tuple[WorkerProcess, int, float]] = {}  # worker, slot, seconds

    def build(self) -> None:
        """Builds what has no result yet, each worker taking the next program when it is free."""
        waiting = deque(i for i in range(len(self._programs)) if i not in self.results)
        under_way: dict[WorkerProcess, tuple[int, int]] = {}
        while waiting or under_way:
            for worker in self._pool.workers:
                if waiting and worker not in under_way:
                    i = waiting.popleft()
                    slot = self._pool.send_build(worker, self._task, self._programs[i])
                    under_way[worker] = (i, slot)
            for worker, outcome in self._pool.wait(list(under_way)):
                i, slot = under_way.pop(worker)
                self._finish_build(i, worker, slot, outcome)

    def _finish_build(self, i: int, worker: WorkerProcess, slot: int, outcome: Outcome) -> None:
        if isinstance(outcome, WorkerFailure) or outcome.error is not None:
            self._fail(i, outcome, 0.0)
        else:
            self._built[i] = (worker, slot, outcome.seconds)

    def time(self) -> None:
        """Times what was built, one program on the machine at a time.

        Worker by worker: the threads of a kernel spin for a while after it has ended, which would
        disturb another worker's.
        """
        place = {worker: i for i, worker in enumerate(self._pool.workers)}
        built = [(i, *entry) for i, entry in self._built.items() if entry[0] in place]
        self._built.clear()
        for i, worker, slot, build_s in sorted(built, key=lambda entry: place[entry[1]]):
            if worker in self._pool.workers:
                self._time_one(i, worker, slot, build_s)

    def _time_one(self, i: int, worker: WorkerProcess, slot: int, build_s: float) -> None:
        config = self._pool.config
        limit_s = None if math.isinf(self._best_s) else self._best_s * config.abort_factor
        worker.send(Time(slot, limit_s), config.run_timeout_s)
        ((_, outcome),) = self._pool.wait([worker])
        if isinstance(outcome, WorkerFailure) or outcome.error is not None:
            self._fail(i, outcome, build_s)
            return
        latencies = cast("tuple[float, ...]", outcome.value)
        self.results[i] = measured(latencies, build_s, outcome.seconds)
        self._best_s = min(self._best_s, self.results[i].latency_s or math.inf)

    def _fail(self, i: int, outcome: Outcome, build_s: float) -> None:
        kind = outcome.kind if isinstance(outcome, WorkerFailure) else outcome.error
        self.results[i] = Measurement(error=kind, message=outcome.message, build_s=build_s)
