"""`Farm`: the servers of a key, as the tracker lends them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansor.config import MeasureConfig, RpcConfig
from ansor.errors import MeasureError
from ansor.measure.local.fork_server import ForkServer
from ansor.measure.local.worker_process import Outcome, WorkerFailure
from ansor.measure.protocol import CallThere, Connect, Setup
from ansor.measure.remote_program import Library, Server
from ansor.measure.rpc.farm_run import FarmRun, Job
from ansor.measure.rpc.lease import Lease
from ansor.measure.rpc.queue import Queue
from ansor.measure.rpc.tracker import Tracker
from ansor.targets.backend import Backend


class Farm:
    """The servers of a key.

    Args:
        tracker: lends them.
        key: of the servers.
        threads: of the programs; 0 for as many as a server has.
        backend: of the target.
        fork_server: makes the processes that are connected with servers.
        linker: see `ansor.targets.library.deployable`.
        watch: reference that shows whether a server is disturbed, None for none.

    Attributes:
        limits: time limits.
        config: of the measurements.
        threads, linker: see above.
    """

    def __init__(
        self,
        tracker: Tracker,
        key: str,
        threads: int,
        config: MeasureConfig,
        backend: Backend[Any],
        fork_server: ForkServer,
        linker: str | None,
        watch: Callable[[], Library | None],
    ) -> None:
        self.limits: RpcConfig = tracker.limits
        self.config, self.linker = config, linker
        self._tracker, self._key = tracker, key
        self.threads, self._watch = threads, watch
        self._setup = Setup(config, backend.home, here=False)
        self._fork_server = fork_server

    def connect_request(self, server: Server, watched: bool = True) -> Connect:
        """The request that opens a session with a server, `watched` for disturbances."""
        watch = self._watch() if watched else None
        return Connect(server, self.limits.session_s, self.threads, watch)

    def queue(self) -> Queue:
        """A wait for a free server."""
        return Queue(self._tracker, self._key)

    def lease(self, server: Server) -> Lease:
        """A process that begins to connect with a server."""
        request = self.connect_request(server)
        return Lease(self._setup, self._fork_server, request, self.limits)

    def run(self) -> FarmRun:
        """Jobs on all servers."""
        return FarmRun(self.queue(), self.lease, self.limits.retries)

    def run_all(self, jobs: Mapping[int, Job]) -> dict[int, Outcome]:
        """Runs jobs; returns the outcomes under the same numbers.

        Raises:
            MeasureError: no server opens a session in time, or there is no tracker.
        """
        done: dict[int, Outcome] = {}
        with self.run() as run:
            for number, job in jobs.items():
                run.add(number, job)
            while run.is_open:
                run.give()
                run.waits.end()
                done |= run.take()
        return done

    def ask(self, function: Callable[..., object], *arguments: Any) -> object:
        """The result of a function that gets the session of a server, and further arguments.

        Raises:
            MeasureError: it fails, or `run_all` does.
        """
        job = Job(lambda: CallThere(function, arguments), self.limits.ask_s)
        outcome = self.run_all({0: job})[0]
        if isinstance(outcome, WorkerFailure) or outcome.error is not None:
            raise MeasureError(
                f"a server of the key {self._key!r}: {outcome.message}",
                "see the output of the server",
            )
        return outcome.value

    def next_server(self) -> Server:
        """Waits for the next free server.

        Raises:
            MeasureError: none is free in time, or there is no tracker.
        """
        queue = self.queue()
        try:
            while True:
                queue.ask()
                queue.check()
                queue.waits.end()
                if (server := queue.take()) is not None:
                    return server
        finally:
            queue.withdraw()
