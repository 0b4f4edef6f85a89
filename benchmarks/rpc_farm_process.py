"""Forks a tracker, and servers: ``python -m benchmarks.rpc_farm_process PORT``.

A line of its input is "server PORT KEY WAIT_S". The answer to the start and to each line is a
process id. Each process has its own process group.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import tvm_ffi
from tvm.rpc.server import PopenRPCServerState
from tvm.rpc.tracker import PopenTrackerServerState

HOST = "127.0.0.1"
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_EVALUATOR = "runtime.RPCTimeEvaluator"


def main(port: int) -> None:
    """Serves the parent until it closes the input."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _answer(_forked(partial(_track, port)))
    for line in sys.stdin:
        _, own, key, wait_s = line.split()
        _answer(_forked(partial(_serve, port, int(own), key, float(wait_s))))


def _answer(pid: int) -> None:
    sys.stdout.write(f"{pid}\n")
    sys.stdout.flush()


def _forked(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(2, 1)
        work()
        os._exit(1)
    with suppress(OSError):  # it may have done so, or have ended
        os.setpgid(pid, pid)
    return pid


def _track(port: int) -> None:
    PopenTrackerServerState(HOST, port, port + 1).thread.join()


def _serve(tracker: int, port: int, key: str, wait_s: float) -> None:
    if wait_s:
        _wait_before_timing(wait_s)
    server = PopenRPCServerState(HOST, port, port + 1, tracker_addr=(HOST, tracker), key=key)
    server.thread.join()


def _wait_before_timing(wait_s: float) -> None:
    """A slow device: its time evaluator waits once for each program. The first module of a session
    is the known work."""
    made = tvm_ffi.get_global_func(_EVALUATOR)
    seen: list[Any] = []

    def slow(module: Any, *arguments: Any) -> Any:
        if not any(module.same_as(other) for other in seen):
            seen.append(module)
            time.sleep(wait_s if len(seen) > 1 else 0.0)
        return made(module, *arguments)

    tvm_ffi.register_global_func(_EVALUATOR, slow, override=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
