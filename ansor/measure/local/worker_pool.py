"""The worker processes of one device."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansor.config import MeasureConfig
from ansor.errors import MeasureError
from ansor.measure.local.drift import Drift
from ansor.measure.local.fork_server import ForkServer
from ansor.measure.local.spread import Spread
from ansor.measure.local.worker_process import (
    Outcome,
    WorkerFailure,
    WorkerProcess,
    wait_for_any,
)
from ansor.measure.protocol import Build, Define, Request, Setup
from ansor.program.program import Program
from ansor.targets.backend import Backend
from ansor.targets.host.memory import PLAIN_PAGES
from ansor.targets.host.quota import available_bytes
from ansor.targets.host.threads import module_path, pool_variables


class Pool:
    """A fixed number of workers. A worker that fails is replaced.

    Args:
        threads: of a kernel while it is timed.
        backend: of the target. Each of its lanes times one program at a time.
        here: whether programs are timed in these processes.
        fork_server: makes the workers; by default the pool's own.

    Attributes:
        config: of the device.
        on_host: whether kernels run in the workers' memory, see `Execution`.
        drift: the speed of the machine since the device was made.
        workers: the present workers.
        replaced: number of workers that were killed and replaced.
        close: kills all workers; may be called twice, and runs when the interpreter ends.
    """

    def __init__(
        self,
        threads: int,
        config: MeasureConfig,
        backend: Backend[Any],
        here: bool = True,
        fork_server: ForkServer | None = None,
    ) -> None:
        self.config = config
        self.lanes = [pool_variables(threads) | lane for lane in backend.execution.lanes()]
        self.on_host = backend.execution.on_host
        self.replaced = 0
        self.drift = Drift(config.quiet_factor)
        self._fork_server = fork_server or new_fork_server(backend)
        self._slots = itertools.count()
        count = max(len(self.lanes), min(config.workers, len(os.sched_getaffinity(0))))
        # A driver of a GPU reserves much address space.
        memory_bytes = worker_memory_bytes(config) if self.on_host else None
        self._setup = Setup(config, backend.home, memory_bytes, here)
        self.workers = [self._new(place) for place in range(count)]
        self.close = weakref.finalize(self, _kill_all, self.workers, self._fork_server)

    def start(self, count: int | None = None) -> None:
        """Starts the first `count` workers, or all, and returns at once. Running workers continue.
        Without this call, a worker starts at its first use."""
        for worker in self.workers[:count]:
            worker.start()

    def settle(self) -> None:
        """Waits for the workers that are starting, because they disturb timings.

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
        """Replaces workers after `recycle_after` builds, and workers that died since their last
        request. No worker may be busy."""
        for worker in list(self.workers):
            if worker.builds >= self.config.recycle_after or worker.has_ended:
                self.replace(worker)

    def kill_busy(self) -> None:
        """Kills all busy workers, after an interrupt."""
        for worker in list(self.workers):
            if worker.busy and not worker.is_starting:
                self.replace(worker)

    def define(self, worker: WorkerProcess, task: Define) -> None:
        """Makes a task known to a worker, once.

        Raises:
            MeasureError: the worker cannot read the task.
            WorkerFailure: the worker died.
        """
        if task.key in worker.tasks:
            return
        reply = worker.ask(task, self.config.start_timeout_s)
        if reply.error is not None:
            raise MeasureError(
                f"a worker could not read task {task.key}: {reply.message}",
                "use the same version of the package in all processes",
            )
        worker.tasks.add(task.key)

    def send_build(self, worker: WorkerProcess, task: Define, program: Program) -> int:
        """Asks a worker to build a program; returns the slot that will hold it.

        Raises:
            MeasureError, WorkerFailure: as `define`.
        """
        slot = self.new_slot()
        self.send_job(worker, task, Build(task.key, slot, program), self.config.build_timeout_s)
        return slot

    def new_slot(self) -> int:
        """The number of a new slot."""
        return next(self._slots)

    def send_job(
        self, worker: WorkerProcess, task: Define, request: Request, timeout_s: float
    ) -> None:
        """Sends a request that builds a program of a task.

        Raises:
            MeasureError, WorkerFailure: as `define`.
        """
        self.define(worker, task)
        worker.builds += 1
        worker.send(request, timeout_s)

    def spread(
        self, jobs: Mapping[int, Callable[[WorkerProcess], None]]
    ) -> dict[int, tuple[WorkerProcess, Outcome]]:
        """Runs jobs, each of which sends a worker one request. A free worker gets the next job.
        Returns, under the same numbers, the worker and the outcome.

        Raises:
            MeasureError: two workers died before a job had begun, or one did not start.
        """
        spread = Spread(self, jobs)
        done: dict[int, tuple[WorkerProcess, Outcome]] = {}
        while spread.is_open:
            spread.give()
            wait_for_any(spread.waited)
            done |= spread.take()
        return done

    def wait(self, workers: Sequence[WorkerProcess]) -> list[tuple[WorkerProcess, Outcome]]:
        """Waits until at least one busy worker has answered or failed; a failed one is replaced."""
        while not (done := self.answers(workers)):
            wait_for_any(workers)
        return done

    def answers(self, workers: Sequence[WorkerProcess]) -> list[tuple[WorkerProcess, Outcome]]:
        """The answers of busy workers so far, or their failures. Failed workers are replaced."""
        return [(w, o) for w in workers if (o := self._outcome(w)) is not None]

    def _outcome(self, worker: WorkerProcess) -> Outcome | None:
        try:
            return worker.poll()
        except WorkerFailure as failure:
            self.replace(worker)
            return failure


def new_fork_server(backend: Backend[Any]) -> ForkServer:
    """A fork server whose processes compile for a kind of target."""
    return ForkServer(worker_environment(backend.compiler.variables()))


def worker_environment(compiler: Mapping[str, str]) -> Mapping[str, str]:
    """The environment of a worker: the parent's modules, and the behaviour of threads.

    TVM's threads sleep soon. While they spin, the last worker disturbs the next one, which then has
    half of the speed. NumPy has no further threads, because they would spin, too.
    """
    return os.environ | {
        **pool_variables(1),
        **PLAIN_PAGES,
        **compiler,
        **module_path(),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONSAFEPATH": "1",
        "PYTHONUNBUFFERED": "1",
    }


def worker_memory_bytes(config: MeasureConfig) -> int:
    """Limit of the memory of a worker's data.

    If several workers exceed the memory together, the kernel ends one of them and not the parent
    (`die_with_parent`).
    """
    return max(config.least_memory_bytes, int(config.memory_share * available_bytes()))


def _kill_all(workers: list[WorkerProcess], fork_server: ForkServer) -> None:
    for worker in workers:
        worker.kill()
    fork_server.kill()
