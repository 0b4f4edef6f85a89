"""The number of threads that TVM's kernels run on."""

from __future__ import annotations

import os

import psutil
import tvm

from ansor.errors import ArgumentError

THREADS_VARIABLE = "TVM_NUM_THREADS"  # all of them read by TVM once, when its pool starts
BIND_VARIABLE = "TVM_BIND_THREADS"
SPIN_VARIABLE = "TVM_THREAD_POOL_SPIN_COUNT"
SPIN_COUNT = 2_000  # polls (1 ms) before an idle thread of the pool sleeps; TVM's own: 300000


def available_cores() -> int:
    """Physical cores that this process may use; hyper-threads of one core count once."""
    allowed = len(os.sched_getaffinity(0))
    physical = psutil.cpu_count(logical=False)
    return min(allowed, physical) if physical else allowed


def pool_variables(threads: int, spin_count: int = SPIN_COUNT) -> dict[str, str]:
    """Environment variables of a process whose kernels run on `threads` threads.

    TVM binds its threads to cores, all but the one that calls, and lets them spin for 0.2 s after a
    kernel. So 3 of 26 processes on two cores ran at half speed all their lives, with both threads
    on one core; unbound threads that spin as long, 6 of 26; unbound ones that sleep after 1 ms,
    and are woken on a core that is free, none of 38.
    """
    return {
        THREADS_VARIABLE: str(threads),
        BIND_VARIABLE: "0",
        SPIN_VARIABLE: str(spin_count),
    }


def use_threads(count: int) -> None:
    """Lets TVM's kernels of this process run on `count` threads.

    TVM sizes its pool on first use, from the environment or else with half of the processors, and
    never enlarges it afterwards: call this before any kernel runs. Where the environment says
    nothing about binding and spinning, `pool_variables` does.

    Raises:
        ArgumentError: count below one, or more than the pool that already runs.
    """
    if count < 1:
        raise ArgumentError("threads", count, "must be a positive integer")
    os.environ.update(pool_variables(count) | os.environ | {THREADS_VARIABLE: str(count)})
    tvm.get_global_func("runtime.config_threadpool")(1, count)
    running = int(tvm.get_global_func("runtime.NumThreads")())
    if running != count:
        remedy = (
            f"TVM already runs with {running}; set {THREADS_VARIABLE} before the process starts"
        )
        raise ArgumentError("threads", count, remedy)
