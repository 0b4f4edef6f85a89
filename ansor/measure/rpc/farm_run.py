"""Jobs on all servers that the tracker lends.

If a server dies or does not answer, its job loses one attempt. A server that joins gets the next
waiting job.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ansor.closing import Closing
from ansor.errors import MeasureError
from ansor.measure.local.worker_process import Outcome, WorkerFailure
from ansor.measure.protocol import RemoteRequest, Reply
from ansor.measure.remote_program import Server
from ansor.measure.result import ErrorKind
from ansor.measure.rpc.lease import Lease
from ansor.measure.rpc.queue import Queue
from ansor.measure.rpc.wait import Wait

_ENDING = (ErrorKind.DEVICE, ErrorKind.TIMEOUT)  # errors that end a session


@dataclass
class Job:
    """Work for one server.

    Attributes:
        request: makes the request when it is sent.
        timeout_s: after which the server counts as lost.
        lost: number of servers that were lost with it.
    """

    request: Callable[[], RemoteRequest]
    timeout_s: float
    lost: int = 0


class FarmRun(Closing):
    """Waiting jobs, and servers that run them. At the end all servers are given back.

    Args:
        queue: the wait for free servers.
        lease: begins to connect with a server.
        retries: of a job whose server was lost.
    """

    def __init__(self, queue: Queue, lease: Callable[[Server], Lease], retries: int) -> None:
        self._queue, self._lease, self._retries = queue, lease, retries
        self._waiting: deque[tuple[int, Job]] = deque()
        self._leases: dict[Lease, tuple[int, Job] | None] = {}

    def add(self, number: int, job: Job) -> None:
        """Adds a job, known by its number."""
        self._waiting.append((number, job))

    @property
    def is_open(self) -> bool:
        """Whether a job has no outcome yet."""
        return bool(self._waiting) or any(self._leases.values())

    def give(self) -> None:
        """Gives jobs to free servers, and requests a server for each further job.

        Raises:
            MeasureError: no server opens a session in time, or there is no tracker.
        """
        for lease in list(self._leases):
            if lease.is_free and lease.is_over:
                self._drop(lease)
            elif lease.is_free and self._waiting:
                given = self._leases[lease] = self._waiting.popleft()
                job = given[1]
                lease.send(job.request(), job.timeout_s)
        if any(lease.is_connected for lease in self._leases):
            self._queue.has_server()
        if len(self._waiting) > sum(not lease.is_connected for lease in self._leases):
            self._queue.ask()
            if not self._leases:
                self._queue.check()
        else:
            self._queue.withdraw()

    @property
    def waits(self) -> Wait:
        """The waits for the next event."""
        busy = [lease for lease in self._leases if not lease.is_free]
        deadline_s = min((lease.deadline for lease in busy), default=math.inf)
        found = Wait(tuple(lease.fileno() for lease in busy), deadline_s)
        return found | self._queue.waits if self._waiting else found

    def take(self) -> dict[int, Outcome]:
        """The outcomes of ended jobs, by number."""
        server = self._queue.take()
        if server is not None:
            self._leases[self._lease(server)] = None
        done: dict[int, Outcome] = {}
        for lease in [lease for lease in self._leases if not lease.is_free]:
            outcome = lease.poll()
            if outcome is not None:
                done |= self._ended(lease, outcome)
        return done

    def _ended(self, lease: Lease, outcome: Outcome) -> dict[int, Outcome]:
        """Registers the outcome of a request; returns the job's outcome if it has ended."""
        given, self._leases[lease] = self._leases[lease], None
        is_lost = isinstance(outcome, WorkerFailure) or outcome.error is ErrorKind.DEVICE
        if isinstance(outcome, WorkerFailure) or outcome.error in _ENDING:
            self._drop(lease)
        if given is None:
            self._opened(lease, outcome)
            return {}
        number, job = given
        if not is_lost:
            return {number: outcome}
        job.lost += 1
        if job.lost <= self._retries:
            self._waiting.append(given)
            return {}
        return {number: _lost(lease, job, outcome)}

    def _opened(self, lease: Lease, outcome: Outcome) -> None:
        """Raises a MeasureError if a server cannot run the compiled programs."""
        if isinstance(outcome, Reply) and outcome.error is ErrorKind.RUN:
            raise MeasureError(
                f"{lease.server}: {outcome.message}",
                "give the server's target, and a linker for it",
            )

    def _drop(self, lease: Lease) -> None:
        lease.close()
        del self._leases[lease]

    def close(self) -> None:
        """Gives all servers back; may be called twice."""
        self._queue.withdraw()
        for lease in list(self._leases):
            self._drop(lease)


def _lost(lease: Lease, job: Job, outcome: Outcome) -> WorkerFailure:
    """The outcome of a job whose servers were lost."""
    text = f"{job.lost} servers died or did not answer within {job.timeout_s:g} s"
    return WorkerFailure(ErrorKind.DEVICE, f"{text}, {lease.server} last: {outcome.message}")
