"""Jobs that are spread over the workers of a pool."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ansor.errors import MeasureError
from ansor.measure.local.worker_process import (
    Outcome,
    WorkerFailure,
    WorkerProcess,
    not_started,
)


class Workers(Protocol):
    """The workers of a pool."""

    @property
    def workers(self) -> Sequence[WorkerProcess]:
        """All workers."""

    def recycle(self) -> None:
        """Replaces workers that have built many programs."""

    def start(self, count: int) -> None:
        """Starts workers for a number of jobs."""

    def replace(self, worker: WorkerProcess) -> WorkerProcess:
        """Kills a worker and returns a new one."""

    def answers(self, workers: Sequence[WorkerProcess]) -> list[tuple[WorkerProcess, Outcome]]:
        """Outcomes of busy workers, without a wait."""


class Spread:
    """Jobs, each of which sends a worker one request. A free worker gets the next job.

    Args:
        jobs: by number.
    """

    def __init__(self, pool: Workers, jobs: Mapping[int, Callable[[WorkerProcess], None]]) -> None:
        pool.recycle()
        pool.start(len(jobs))
        self._pool, self._jobs = pool, jobs
        self._waiting = deque(jobs)
        self._under_way: dict[WorkerProcess, int] = {}

    @property
    def is_open(self) -> bool:
        """Whether a job has no outcome yet."""
        return bool(self._waiting or self._under_way)

    def give(self) -> None:
        """Gives jobs to the workers that are free.

        Raises:
            MeasureError: two workers died before a job had begun.
        """
        for worker in list(self._pool.workers):
            if self._waiting and worker.is_ready and worker not in self._under_way:
                number = self._waiting.popleft()
                self._under_way[self._given(worker, self._jobs[number])] = number

    @property
    def waited(self) -> list[WorkerProcess]:
        """The busy workers."""
        starting = [worker for worker in self._pool.workers if self._waiting and worker.is_starting]
        return [*self._under_way, *starting]

    def take(self) -> dict[int, tuple[WorkerProcess, Outcome]]:
        """The ended jobs by number: the worker and the outcome.

        Raises:
            MeasureError: a worker did not start.
        """
        done: dict[int, tuple[WorkerProcess, Outcome]] = {}
        for worker, outcome in self._pool.answers(self.waited):
            if worker in self._under_way:
                done[self._under_way.pop(worker)] = worker, outcome
            elif isinstance(outcome, WorkerFailure):
                raise not_started(outcome)
        return done

    def _given(self, worker: WorkerProcess, job: Callable[[WorkerProcess], None]) -> WorkerProcess:
        """The worker that has accepted a job: this one, or a new one if it has died before."""
        try:
            job(worker)
        except WorkerFailure:
            worker = self._pool.replace(worker)
        else:
            return worker
        try:
            job(worker)
        except WorkerFailure as failure:
            raise MeasureError(
                f"a new worker died of a task: {failure.message}",
                "see the free memory with `ansor doctor`",
            ) from None
        return worker
