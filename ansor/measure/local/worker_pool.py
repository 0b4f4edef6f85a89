"""The worker processes of one device."""

from __future__ import annotations

import itertools
import os
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansor.config import MeasureConfig
from ansor.errors import MeasureError
from ansor.measure.local.drift import Drift
from ansor.measure.local.fork_server import ForkServer
from ansor.measure.local.worker_process import (
    WorkerFailure,
    WorkerProcess,
    not_started,
    wait_for_any,
)
from ansor.measure.protocol import Build, Define, Reply, Setup
from ansor.program.program import Program
from ansor.targets.backend import Backend
from ansor.targets.host.memory import PLAIN_PAGES
from ansor.targets.host.quota import available_bytes
from ansor.targets.host.threads import module_path, pool_variables

Outcome = Reply | WorkerFailure


class Pool:
    """A fixed number of places, each held by a worker that is replaced when it fails.

    Args:
        threads: of a kernel while it is timed.
        backend: of the target. In each of its lanes, one program at a time is timed.

    Attributes:
        config: of the device.
        on_host: whether kernels run in the workers' memory, see `Execution`.
        drift: the speed of the machine since the device was made.
        workers: the present holders of the places.
        replaced: how many workers were killed and replaced, for whatever reason.
        close: kills all workers; may be called twice, and runs when the interpreter ends.
    """

    def __init__(
        self,
        threads: int,
        config: MeasureConfig,
        backend: Backend[Any],
    ) -> None:
        self.config = config
        self.lanes = backend.execution.lanes()
        self.on_host = backend.execution.on_host
        self.replaced = 0
        self.drift = Drift(config.quiet_factor)
        self._fork_server = ForkServer(worker_environment(threads, backend.compiler.variables()))
        self._slots = itertools.count()
        count = max(len(self.lanes), min(config.workers, len(os.sched_getaffinity(0))))
        # A driver of a GPU reserves address space as it likes.
        memory_bytes = worker_memory_bytes(config) if self.on_host else None
        self._setup = Setup(config, backend.home, memory_bytes)
        self.workers = [self._new(place) for place in range(count)]
        self.close = weakref.finalize(self, _kill_all, self.workers, self._fork_server)

    def start(self, count: int | None = None) -> None:
        """Starts the first `count` workers, or all, where that has not been done, and returns at
        once; without it a worker starts when it is first needed."""
        for worker in self.workers[:count]:
            worker.start()

    def settle(self) -> None:
        """Waits for the workers that are starting, which disturbs what is timed.

        Raises:
            MeasureError: one does not start.
        """
        for worker in self.workers:
            if worker.is_starting:
                worker.ready()

    def _new(self, place: int) -> WorkerProcess:
        return WorkerProcess(self._setup, self._fork_server, self.lanes[place % len(self.lanes)])

    def lane_of(self, worker: WorkerProcess) -> int:
        """Number of a present worker's lane."""
        return self.workers.index(worker) % len(self.lanes)

    def replace(self, worker: WorkerProcess) -> WorkerProcess:
        """Kills a worker and puts a new one in its place, started at once."""
        worker.kill()
        self.replaced += 1
        place = self.workers.index(worker)
        self.workers[place] = self._new(place)
        self.workers[place].start()
        return self.workers[place]

    def recycle(self) -> None:
        """Replaces the workers that have built enough, and those that died since they were last
        asked; to be called when none is busy."""
        for worker in list(self.workers):
            if worker.builds >= self.config.recycle_after or worker.has_ended:
                self.replace(worker)

    def kill_busy(self) -> None:
        """Gets rid of every request under way, after an interrupt."""
        for worker in list(self.workers):
            if worker.busy and not worker.is_starting:
                self.replace(worker)

    def define(self, worker: WorkerProcess, task: Define) -> None:
        """Makes a task known to a worker, once.

        Raises:
            MeasureError: the worker cannot read it.
            WorkerFailure: the worker died.
        """
        if task.key in worker.tasks:
            return
        reply = worker.ask(task, self.config.start_timeout_s)
        if reply.error is not None:
            raise MeasureError(f"a worker could not read task {task.key}: {reply.message}")
        worker.tasks.add(task.key)

    def send_build(self, worker: WorkerProcess, task: Define, program: Program) -> int:
        """Asks a worker to build a program; returns the slot that will hold it.

        Raises:
            MeasureError, WorkerFailure: as `define`.
        """
        self.define(worker, task)
        slot = next(self._slots)
        worker.builds += 1
        worker.send(Build(task.key, slot, program), self.config.build_timeout_s)
        return slot

    def spread(
        self, jobs: Mapping[int, Callable[[WorkerProcess], None]]
    ) -> dict[int, tuple[WorkerProcess, Outcome]]:
        """Runs jobs, each of which sends a worker one request; a worker takes the next when it is
        free. Under the same numbers, who did it and what came of it.

        Raises:
            MeasureError: two workers died before a job had begun, or one did not start.
        """
        self.recycle()
        self.start(len(jobs))
        waiting = deque(jobs)
        under_way: dict[WorkerProcess, int] = {}
        done: dict[int, tuple[WorkerProcess, Outcome]] = {}
        while waiting or under_way:
            for worker in list(self.workers):
                if waiting and worker.is_ready and worker not in under_way:
                    number = waiting.popleft()
                    under_way[self._given(worker, jobs[number])] = number
            starting = [worker for worker in self.workers if waiting and worker.is_starting]
            for worker, outcome in self.wait([*under_way, *starting]):
                if worker in under_way:
                    done[under_way.pop(worker)] = worker, outcome
                elif isinstance(outcome, WorkerFailure):
                    raise not_started(outcome)
        return done

    def _given(self, worker: WorkerProcess, job: Callable[[WorkerProcess], None]) -> WorkerProcess:
        """Who has taken a job: the worker, or a new one where it died of what came before."""
        try:
            job(worker)
        except WorkerFailure:
            worker = self.replace(worker)
        else:
            return worker
        try:
            job(worker)
        except WorkerFailure as failure:
            raise MeasureError(f"a new worker died of a task: {failure.message}") from None
        return worker

    def wait(self, workers: Sequence[WorkerProcess]) -> list[tuple[WorkerProcess, Outcome]]:
        """Waits until at least one busy worker has answered or failed; a failed one is replaced."""
        while not (done := self.answers(workers)):
            wait_for_any(workers)
        return done

    def answers(self, workers: Sequence[WorkerProcess]) -> list[tuple[WorkerProcess, Outcome]]:
        """What busy workers have answered by now, or that they failed, in which case they are
        replaced."""
        return [(w, o) for w in workers if (o := self._outcome(w)) is not None]

    def _outcome(self, worker: WorkerProcess) -> Outcome | None:
        try:
            return worker.poll()
        except WorkerFailure as failure:
            self.replace(worker)
            return failure


def worker_environment(threads: int, compiler: Mapping[str, str]) -> Mapping[str, str]:
    """The environment of a worker: the parent's modules, and how TVM's threads behave.

    They sleep soon: as long as they spin, the worker whose turn it was disturbs the one whose turn
    it is (half of the speed). NumPy's have nothing to do, and would spin while others start.
    """
    return os.environ | {
        **pool_variables(threads),
        **PLAIN_PAGES,
        **compiler,
        **module_path(),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONSAFEPATH": "1",
        "PYTHONUNBUFFERED": "1",
    }


def worker_memory_bytes(config: MeasureConfig) -> int:
    """What the data of one worker may take.

    Where several workers exceed the memory together, the kernel ends one of them and not the
    parent (`die_with_parent`).
    """
    return max(config.least_memory_bytes, int(config.memory_share * available_bytes()))


def _kill_all(workers: list[WorkerProcess], fork_server: ForkServer) -> None:
    for worker in workers:
        worker.kill()
    fork_server.kill()
