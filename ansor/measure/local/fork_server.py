"""The parent's handle on a process that imports the modules of workers and forks workers.

The import of TVM takes most of a second. One process does it, before it has any threads. Each
worker, also a replacement, then starts in milliseconds.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import IO

from ansor.config import WORKERS


class ForkServerError(Exception):
    """The fork server has ended; the text is its last output."""


class ForkServer:
    """The fork server. It starts with the first worker, and again if it was killed.

    It ends when the parent dies, or when the thread that started it ends (Linux). Its workers and
    their child processes end with it.

    Args:
        environment: of the process and its workers, which may add variables.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._log: IO[bytes] | None = None
        self._numbers = itertools.count()
        self._unborn: dict[int, Forked] = {}  # by the number of the request

    def start(self) -> None:
        """Starts the process unless it runs, and returns at once."""
        if self._process is not None and self._process.poll() is None:
            return
        self.kill()
        self._control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(WORKERS.fork_answer_s)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `kill`)
        parent = str(os.getpid())
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ansor.measure.child", str(other.fileno()), parent],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                env=dict(self._environment),
                pass_fds=[other.fileno()],
                start_new_session=True,
            )

    def fork(
        self, environment: Mapping[str, str], read_fd: int, write_fd: int, log_fd: int
    ) -> Forked:
        """Requests a worker and returns at once.

        Args:
            environment: variables that the worker adds to the fork server's.
            read_fd, write_fd: its ends of pipes, see `ansor.measure.channel.Channel`.
            log_fd: file of its output.
        """
        self.start()
        forked = Forked(self)
        number = self._send({"spawn": dict(environment)}, [read_fd, write_fd, log_fd])
        self._unborn[number] = forked
        return forked

    def answer(self, forked: Forked) -> int:
        """Waits until a requested worker has started, and returns its process id.

        Raises:
            ForkServerError: the fork server has ended.
        """
        for number in [number for number, own in self._unborn.items() if own is forked]:
            self._receive(number)
        if forked.pid is None:
            raise ForkServerError("it ended before")
        return forked.pid

    def status_of(self, pid: int, wait: bool) -> int | None:
        """Exit status of a worker. Without waiting, None while it runs.

        Raises:
            ForkServerError: the fork server has ended, and the status is unknown.
        """
        return self._receive(self._send({"ended": pid, "wait": wait}, []))

    def _send(self, request: dict[str, object], fds: list[int]) -> int:
        """Sends a request and returns its number. If the fork server has ended, `answer` raises."""
        number = next(self._numbers)
        message = json.dumps({"number": number, **request}).encode()
        with contextlib.suppress(ConnectionError):
            if self._control is not None:
                socket.send_fds(self._control, [message], fds)
        return number

    def _receive(self, number: int) -> int | None:
        """The answer to a request. Earlier answers belong to an interrupted call, or report started
        workers."""
        while True:
            found, answer = self._next_answer()
            if found in self._unborn:
                self._unborn.pop(found).pid = answer
            if found == number:
                return answer

    def _next_answer(self) -> tuple[int, int | None]:
        found = b""
        with contextlib.suppress(ConnectionError, TimeoutError):
            found = b"" if self._control is None else self._control.recv(WORKERS.fork_message_bytes)
        if not found:
            raise ForkServerError("" if self._log is None else last_words(self._log))
        number, answer = json.loads(found)
        return number, answer

    def kill(self) -> None:
        """Kills the process and frees everything; may be called twice."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for resource in (self._control, self._log):
            if resource is not None:
                resource.close()
        self._process = self._control = self._log = None
        self._unborn.clear()


class Forked:
    """A worker's process.

    Attributes:
        pid: of the process and its group; None until it is known.
        told: the last output of the fork server, if it has ended.
    """

    def __init__(self, fork_server: ForkServer) -> None:
        self._fork_server = fork_server
        self.pid: int | None = None
        self.told = ""
        self._status: int | None = None
        self._is_over = False

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended; waits until it has begun."""
        return self._ends(wait=False)

    def kill(self) -> int | None:
        """Kills the process with its whole group; returns its exit status, None if unknown."""
        if not self._ends(wait=False):
            self._kill_group()
            self._ends(wait=True)
        return self._status

    def _kill_group(self) -> None:
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def _ends(self, wait: bool) -> bool:
        if not self._is_over:
            try:
                pid = self._fork_server.answer(self)
                self._status = self._fork_server.status_of(pid, wait)
                self._is_over = self._status is not None
            except ForkServerError as error:  # its end is the end of all workers
                self._is_over, self.told = True, str(error)
                self._kill_group()  # the worker's child processes
        return self._is_over


def last_words(log: IO[bytes]) -> str:
    """The end of a process's output, without empty lines."""
    log.seek(max(0, log.seek(0, os.SEEK_END) - WORKERS.log_tail_bytes))
    lines = log.read().decode(errors="replace").strip().splitlines()
    return "\n".join(line for line in lines if line.strip())
