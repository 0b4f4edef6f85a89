"""The fork server's process: it forks workers until the parent has ended.

Then it kills all workers and their child processes, such as compilers. Each worker leads its own
process group. If the fork server itself is killed, the kernel kills the workers.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ansor.config import WORKERS
from ansor.measure.child.worker import main
from ansor.parent_death import end_with
from ansor.targets.host.thread_pool import prepare


class ForkService:
    """Answers requests on a socket, in order, until its other end is closed or SIGTERM comes.

    A request ``{"spawn": environment}`` comes with three descriptors (read, write, log). The answer
    is the process id of a worker. A request ``{"ended": pid, "wait": bool}`` asks for the worker's
    exit status, in the form of `os.waitstatus_to_exitcode`. The answer is null while it runs. Each
    request has a "number", and its answer is ``[number, answer]``.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._workers: set[int] = set()  # whose end has not been reported

    def serve(self) -> None:
        """Answers until the end; then all workers end."""
        signal.signal(signal.SIGTERM, self._end)
        try:
            while True:
                request, fds, _, _ = socket.recv_fds(self._control, WORKERS.fork_message_bytes, 3)
                if not request:
                    return
                told = json.loads(request)
                answer = json.dumps([told["number"], self._answer(told, fds)])
                self._control.send(answer.encode())
        finally:
            self._kill_workers()

    def _end(self, number: int, frame: object) -> None:
        self._kill_workers()
        os._exit(128 + number)

    def _kill_workers(self) -> None:
        for pid in self._workers:
            _kill_group(pid)

    def _answer(self, request: dict[str, Any], fds: list[int]) -> int | None:
        if "spawn" not in request:
            return self._ended(request["ended"], request["wait"])
        # A worker must not run the handler, which ends its siblings.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
            self._control.close()
            _become(lambda: _work(parent, request["spawn"], *fds))
        self._workers.add(pid)
        with suppress(OSError):  # it may have done so, or have ended
            os.setpgid(pid, pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        for each in fds:
            os.close(each)
        return pid

    def _ended(self, pid: int, wait: bool) -> int | None:
        """Exit status of a worker. Its remaining child processes are killed first."""
        if pid not in self._workers:  # of a fork server before this one
            return -signal.SIGKILL
        # Its process id stays in use until `waitpid`, so that the group is still its own.
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | (0 if wait else os.WNOHANG)) is None:
            return None
        _kill_group(pid)
        self._workers.remove(pid)
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)


def serve_forks(fd: int, parent: int) -> None:
    """Forks workers for a process until it ends.

    Args:
        fd: a socket, see `ForkService`.
        parent: id of the process.
    """
    end_with(parent, signal.SIGTERM)
    _prefer_when_memory_ends()
    prepare()
    with socket.socket(fileno=fd) as control:
        ForkService(control).serve()


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _prefer_when_memory_ends() -> None:
    """Makes this process and its children the first that the kernel ends if memory is short."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _work(
    parent: int, environment: dict[str, str], read_fd: int, write_fd: int, log_fd: int
) -> None:
    end_with(parent)
    os.setpgid(0, 0)
    for stream in (1, 2):
        os.dup2(log_fd, stream)
    os.close(log_fd)
    os.environ.update(environment)
    main(read_fd, write_fd)


def _become(work: Callable[[], None]) -> None:
    """Does the work and ends this process without the exit handlers of the fork server, TVM and
    LLVM, which are not needed."""
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
