"""The parent's handle on one worker process."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO

from ansor.errors import MeasureError
from ansor.measure.channel import Channel
from ansor.measure.protocol import Reply, Request, Setup
from ansor.measure.result import ErrorKind

_LOG_TAIL = 2000  # bytes of a dead worker's output that are reported


class WorkerFailure(Exception):
    """The worker died or does not answer; `kind` is CRASH or TIMEOUT."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class WorkerProcess:
    """One worker: at most one request under way.

    It has a session and process group of its own, so Ctrl-C in a terminal does not reach it. It
    is killed when the parent dies, and also when the thread that started it ends (Linux).

    Attributes:
        tasks: keys of the tasks it knows.
        builds: programs it was asked to build.
        busy: a request is under way.
        is_ready: it has answered, and was not killed since.
        deadline: `time.monotonic()` at which the request under way is given up.
    """

    def __init__(self, setup: Setup, environment: Mapping[str, str]) -> None:
        self.tasks: set[str] = set()
        self.builds = 0
        self.busy = False
        self.deadline = 0.0
        self._setup = setup
        self._environment = environment
        self.is_ready = False
        self._channel: Channel | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def start(self, until: int | None = None, after: int | None = None) -> None:
        """Starts the process and returns at once; nothing happens when it was started before.

        Args:
            until: end of a pipe that the process holds until all that it needs is imported.
            after: the other end of one: the process begins when nobody holds it any more.
        """
        if self._process is not None:
            return
        child_read, parent_write = os.pipe()
        parent_read, child_write = os.pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `kill`)
        self._channel = Channel(parent_read, parent_write)
        given = [child_read, child_write, *(-1 if fd is None else fd for fd in (until, after))]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ansor.measure", *map(str, given)],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                env=dict(self._environment),
                pass_fds=[fd for fd in given if fd >= 0],
                start_new_session=True,
            )
        finally:
            os.close(child_read)
            os.close(child_write)
        self._deliver(self._setup, self._setup.config.start_timeout_s)

    @property
    def was_started(self) -> bool:
        """Whether the process was started, and perhaps is no more."""
        return self._process is not None

    @property
    def has_ended(self) -> bool:
        """Whether the process was started and is no more."""
        return self._process is not None and self._process.poll() is not None

    @property
    def is_starting(self) -> bool:
        """Whether the process was started and has not answered yet."""
        return self.busy and not self.is_ready

    def ready(self) -> None:
        """Starts the process where needed and waits until it answers.

        Raises:
            MeasureError: it does not.
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
        """Sends a request; a worker that is dead shows itself in `receive`."""
        self.ready()
        self._deliver(request, timeout_s)

    def _deliver(self, request: Request, timeout_s: float) -> None:
        assert self._channel is not None
        assert not self.busy
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
        """Reads what has arrived; the reply when it is complete, None when it is not due yet.

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
        """How the process ended, and the end of what it printed."""
        assert self._process is not None
        assert self._log is not None
        self._signal()
        code = self._process.wait()
        ended = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _LOG_TAIL))
        return f"{ended}; {self._log.read().decode(errors='replace').strip()}"

    def _signal(self) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kills the process with its whole group and frees everything; may be called twice."""
        if self._process is not None:
            self._signal()
            self._process.wait()
        for resource in (self._channel, self._log):
            if resource is not None:
                resource.close()
        self.is_ready = self.busy = False


def not_started(failure: WorkerFailure) -> MeasureError:
    """What a worker's failure to start is told as."""
    return MeasureError(f"a measurement worker did not start: {failure.message}")


def readable(fds: Sequence[int], timeout_s: float) -> bool:
    """Waits until one of the descriptors can be read, or was closed at its other end."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return bool(poll.poll(timeout_s * 1e3))


def wait_for_any(workers: Sequence[WorkerProcess]) -> None:
    """Waits until one of the busy workers says something or runs out of time."""
    timeout_s = min(worker.deadline for worker in workers) - time.monotonic()
    readable([worker.fileno() for worker in workers], max(0.0, timeout_s))
