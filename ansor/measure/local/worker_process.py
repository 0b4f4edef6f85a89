"""The parent's handle on one worker process."""

from __future__ import annotations

import os
import select
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import IO

from ansor.config import WORKERS
from ansor.errors import MeasureError
from ansor.measure.channel import Channel
from ansor.measure.local.fork_server import Forked, ForkServer, last_words
from ansor.measure.protocol import Reply, Request, Setup
from ansor.measure.result import ErrorKind


class WorkerFailure(Exception):
    """The worker died or does not answer; `kind` is CRASH or TIMEOUT."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


Outcome = Reply | WorkerFailure  # of a request


class WorkerProcess:
    """One worker: at most one request under way.

    It has its own process group in the fork server's session, so that Ctrl-C in a terminal does not
    reach it. It is killed with the fork server.

    Args:
        setup: the first message to it.
        fork_server: makes it.
        environment: variables that it adds to the fork server's.

    Attributes:
        tasks: keys of its defined tasks.
        builds: number of its build requests.
        busy: whether a request is under way.
        is_ready: whether it has answered, and was not killed since.
        deadline: time of `time.monotonic()` at which the request under way fails.
    """

    def __init__(
        self,
        setup: Setup,
        fork_server: ForkServer,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.tasks: set[str] = set()
        self.builds = 0
        self.busy = False
        self.deadline = 0.0
        self._setup = setup
        self._fork_server, self._environment = fork_server, environment
        self.is_ready = False
        self._channel: Channel | None = None
        self._process: Forked | None = None
        self._log: IO[bytes] | None = None

    def start(self) -> None:
        """Starts the process unless it was started before, and returns at once."""
        if self._process is not None:
            return
        child_read, parent_write = os.pipe()
        parent_read, child_write = os.pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `kill`)
        self._channel = Channel(parent_read, parent_write)
        given = (child_read, child_write, self._log.fileno())
        try:
            self._process = self._fork_server.fork(self._environment, *given)
        finally:
            os.close(child_read)
            os.close(child_write)
        self._deliver(self._setup, self._setup.config.start_timeout_s)

    @property
    def has_ended(self) -> bool:
        """Whether the process has answered once and has ended."""
        return self.is_ready and self._process is not None and self._process.has_ended

    @property
    def is_starting(self) -> bool:
        """Whether the process was started and has not answered yet."""
        return self.busy and not self.is_ready

    def ready(self) -> None:
        """Starts the process if necessary, and waits until it answers.

        Raises:
            MeasureError: it does not answer.
        """
        self.start()
        if self.is_ready:
            return
        try:
            self.receive()
        except WorkerFailure as failure:
            raise not_started(failure) from None

    def ask(self, request: Request, timeout_s: float) -> Reply:
        """Sends a request and waits for its reply.

        Raises:
            WorkerFailure: the worker died or took too long.
        """
        self.send(request, timeout_s)
        return self.receive()

    def send(self, request: Request, timeout_s: float) -> None:
        """Sends a request; the death of a worker is reported by `receive`."""
        self.ready()
        self._deliver(request, timeout_s)

    def _deliver(self, request: Request, timeout_s: float) -> None:
        assert self._channel is not None
        assert self._log is not None
        assert not self.busy
        _shorten(self._log.fileno())
        self.busy = True
        self.deadline = time.monotonic() + timeout_s
        try:
            self._channel.send(request)
        except BrokenPipeError:
            self.deadline = time.monotonic()

    def receive(self) -> Reply:
        """Waits for the reply to the request under way.

        Raises:
            WorkerFailure: the worker died or took too long.
        """
        while (reply := self.poll()) is None:
            wait_for_any([self])
        return reply

    def poll(self) -> Reply | None:
        """Reads the available bytes; returns the reply if it is complete, None if it is not.

        Raises:
            WorkerFailure: the worker died or took too long.
        """
        assert self._channel is not None
        try:
            while readable([self._channel.read_fd], 0.0):
                self._channel.read_some()
                message = self._channel.take()
                if message is not None:
                    assert isinstance(message, Reply)
                    self.busy, self.is_ready = False, True
                    return message
        except EOFError:
            raise WorkerFailure(ErrorKind.CRASH, self._last_words()) from None
        if time.monotonic() >= self.deadline:
            raise WorkerFailure(ErrorKind.TIMEOUT, "no answer in time; the worker was killed")
        return None

    def fileno(self) -> int:
        """The descriptor that becomes readable with a reply."""
        assert self._channel is not None
        return self._channel.read_fd

    def _last_words(self) -> str:
        """The cause of the process's end, and the end of its output."""
        assert self._process is not None
        assert self._log is not None
        code = self._process.kill()
        ended = "it ended" if code is None else f"exit code {code}"
        if code is not None and code < 0:
            ended = f"killed by {signal.Signals(-code).name}"
        return f"{ended}; {last_words(self._log) or self._process.told}"

    def kill(self) -> None:
        """Kills the process with its whole group and frees everything; may be called twice."""
        if self._process is not None:
            self._process.kill()
        for resource in (self._channel, self._log):
            if resource is not None:
                resource.close()
        self.is_ready = self.busy = False


def _shorten(log_fd: int) -> None:
    """Empties the log of an idle worker before it reaches the limit of its size."""
    if os.fstat(log_fd).st_size > WORKERS.log_bytes // 2:
        os.ftruncate(log_fd, 0)
        os.lseek(log_fd, 0, os.SEEK_SET)  # the worker writes at the same offset


def not_started(failure: WorkerFailure) -> MeasureError:
    """The error for a worker that failed to start."""
    return MeasureError(
        f"a measurement worker did not start: {failure.message}",
        "see the free memory and the versions with `ansor doctor`",
    )


def readable(fds: Sequence[int], timeout_s: float) -> bool:
    """Waits until one of the descriptors can be read or was closed at its other end."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return bool(poll.poll(timeout_s * 1e3))


def wait_for_any(workers: Sequence[WorkerProcess]) -> None:
    """Waits until one of the busy workers sends something or exceeds its time."""
    timeout_s = min(worker.deadline for worker in workers) - time.monotonic()
    readable([worker.fileno() for worker in workers], max(0.0, timeout_s))
