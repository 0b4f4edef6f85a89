"""A worker process that is connected with one server."""

from __future__ import annotations

import time

from ansor.config import RpcConfig
from ansor.measure.local.fork_server import ForkServer
from ansor.measure.local.worker_process import Outcome, WorkerFailure, WorkerProcess
from ansor.measure.protocol import Connect, Request, Setup


class Lease:
    """One server, lent by the tracker, and the process that runs programs there.

    The end of the process ends the session, and the server returns to the tracker.

    Args:
        connect: the first request.

    Attributes:
        server: address of the server.
        is_connected: the server has opened the session.
    """

    def __init__(
        self, setup: Setup, fork_server: ForkServer, connect: Connect, config: RpcConfig
    ) -> None:
        self.server = connect.server.address
        self.is_connected = False
        self._ends_s = time.monotonic() + config.lease_s
        self._worker = WorkerProcess(setup, fork_server)
        try:
            self._worker.send(connect, config.connect_s)
        except BaseException:  # an interrupt while the process starts
            self._worker.kill()
            raise

    @property
    def is_free(self) -> bool:
        """Whether it waits for a request."""
        return self.is_connected and not self._worker.busy

    @property
    def is_over(self) -> bool:
        """Whether the server is to be given back."""
        return time.monotonic() > self._ends_s

    @property
    def deadline(self) -> float:
        """Time of `time.monotonic` at which the request under way fails."""
        return self._worker.deadline

    def fileno(self) -> int:
        """The descriptor that becomes readable with a reply."""
        return self._worker.fileno()

    def send(self, request: Request, timeout_s: float) -> None:
        """Sends a request."""
        self._worker.send(request, timeout_s)

    def poll(self) -> Outcome | None:
        """The outcome of the request under way, if there is one."""
        try:
            reply = self._worker.poll()
        except WorkerFailure as failure:
            return failure
        if reply is not None and not self.is_connected:
            self.is_connected = reply.error is None
        return reply

    def close(self) -> None:
        """Gives the server back; may be called twice."""
        self._worker.kill()
