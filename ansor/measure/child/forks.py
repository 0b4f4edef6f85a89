"""The end of the fork server's process: makes workers of itself until the parent is gone."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ansor.config import WORKERS
from ansor.measure.child.worker import die_with_parent, main
from ansor.targets.host.thread_pool import prepare


def serve_forks(fd: int) -> None:
    """Answers requests on a socket, in order.

    ``{"spawn": environment}``, with three descriptors (read, write, log), is answered with the
    process id of a worker; ``{"ended": pid, "wait": bool}`` with its exit status as
    `os.waitstatus_to_exitcode` tells it, null if it has not ended. Each request has a "number",
    and its answer is ``[number, answer]``.
    """
    die_with_parent()
    prepare()
    with socket.socket(fileno=fd) as control:
        while True:
            request, fds, _, _ = socket.recv_fds(control, WORKERS.fork_message_bytes, 3)
            if not request:
                return
            told = json.loads(request)
            control.send(json.dumps([told["number"], _answer(told, fds, control)]).encode())


def _answer(request: dict[str, Any], fds: list[int], control: socket.socket) -> int | None:
    if "spawn" not in request:
        return _ended(request["ended"], request["wait"])
    pid = os.fork()
    if pid == 0:
        control.close()
        _become(lambda: _work(request["spawn"], *fds))
    with suppress(OSError):  # it may have done so, or have ended
        os.setpgid(pid, pid)
    for each in fds:
        os.close(each)
    return pid


def _ended(pid: int, wait: bool) -> int | None:
    try:
        found, status = os.waitpid(pid, 0 if wait else os.WNOHANG)
    except ChildProcessError:  # of a fork server before this one
        return -signal.SIGKILL
    return os.waitstatus_to_exitcode(status) if found else None


def _work(environment: dict[str, str], read_fd: int, write_fd: int, log_fd: int) -> None:
    os.setpgid(0, 0)
    for stream in (1, 2):
        os.dup2(log_fd, stream)
    os.close(log_fd)
    os.environ.update(environment)
    main(read_fd, write_fd)


def _become(work: Callable[[], None]) -> None:
    """Does the work and ends this process, without what the fork server would do at its end: TVM's
    threads and LLVM's destructors have nothing left to do."""
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
