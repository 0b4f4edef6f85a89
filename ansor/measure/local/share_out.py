"""Lends workers for calls that are no measurements."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ansor.executor import R, in_turns
from ansor.measure.local.worker_pool import Pool
from ansor.measure.local.worker_process import Outcome, WorkerFailure, WorkerProcess, not_started
from ansor.measure.protocol import Call


def share_out(
    pool: Pool, function: Callable[..., R], arguments: Sequence[tuple[Any, ...]]
) -> list[R]:
    """See `ansor.executor.Executor`. Workers do the calls; this process repeats failed ones.

    Raises:
        MeasureError: a worker does not start.
    """
    if min(len(pool.workers), len(arguments)) < 2:
        return in_turns(function, arguments)
    pool.recycle()
    pool.start(len(arguments))
    shared = _Shared(pool, function, arguments)
    while len(shared.results) < len(arguments):
        shared.turn()
    return [shared.results[i] for i in range(len(arguments))]


class _Shared:
    """The state of the calls, which are known by their index."""

    def __init__(
        self, pool: Pool, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
    ) -> None:
        self.results: dict[int, Any] = {}
        self._pool, self._function, self._arguments = pool, function, arguments
        self._waiting = deque(range(len(arguments)))
        self._under_way: dict[WorkerProcess, int] = {}

    def turn(self) -> None:
        """Gives a call to each free worker. This process makes the first calls itself, until a
        worker has started."""
        for worker in self._pool.workers:
            if self._waiting and worker.is_ready and worker not in self._under_way:
                self._give(worker, self._waiting.popleft())
        starting = [worker for worker in self._pool.workers if worker.is_starting]
        if self._under_way:
            ended = self._pool.wait([*self._under_way, *starting])
        else:
            self._do(self._waiting.popleft())
            ended = self._pool.answers(starting)
        for worker, outcome in ended:
            if worker in self._under_way:
                self._take(self._under_way.pop(worker), outcome)
            elif isinstance(outcome, WorkerFailure):
                raise not_started(outcome)

    def _give(self, worker: WorkerProcess, number: int) -> None:
        request = Call(self._function, self._arguments[number])
        worker.send(request, self._pool.config.verify_timeout_s)
        self._under_way[worker] = number

    def _take(self, number: int, outcome: Outcome) -> None:
        if isinstance(outcome, WorkerFailure) or outcome.error is not None:
            self._do(number)  # its error, if any, is raised in this process
        else:
            self.results[number] = outcome.value

    def _do(self, number: int) -> None:
        self.results[number] = self._function(*self._arguments[number])
