"""The number of threads that TVM's kernels run on."""

from __future__ import annotations

import os

import psutil
import tvm

from ansor.errors import ArgumentError

THREADS_VARIABLE = "TVM_NUM_THREADS"  # read by TVM once, when its pool of threads starts


def available_cores() -> int:
    """Physical cores that this process may use; hyper-threads of one core count once."""
    allowed = len(os.sched_getaffinity(0))
    physical = psutil.cpu_count(logical=False)
    return min(allowed, physical) if physical else allowed


def use_threads(count: int) -> None:
    """Lets TVM's kernels of this process run on `count` threads.

    TVM sizes its pool on first use, from the environment or else with half of the processors, and
    never enlarges it afterwards: call this before any kernel runs.

    Raises:
        ArgumentError: count below one, or more than the pool that already runs.
    """
    if count < 1:
        raise ArgumentError("threads", count, "must be a positive integer")
    os.environ[THREADS_VARIABLE] = str(count)
    tvm.get_global_func("runtime.config_threadpool")(1, count)
    running = int(tvm.get_global_func("runtime.NumThreads")())
    if running != count:
        remedy = (
            f"TVM already runs with {running}; set {THREADS_VARIABLE} before the process starts"
        )
        raise ArgumentError("threads", count, remedy)
