"""The number of threads that TVM's kernels run on."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager

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


def pool_variables(threads: int) -> dict[str, str]:
    """Environment variables of a process whose kernels run on `threads` threads.

    The threads are bound to cores, as TVM does by default. Free ones that sleep after a kernel were
    woken on the caller's core: of the bursts of kernels 50 ms apart, 60 % ran at half speed. Bound,
    and with the caller kept off their cores (`free_cores`), 1 %.
    """
    return {
        THREADS_VARIABLE: str(threads),
        BIND_VARIABLE: "1",
        SPIN_VARIABLE: str(SPIN_COUNT),
    }


def module_path(*first: str) -> dict[str, str]:
    """Environment variable of a Python process that finds the modules of this one, and before
    them those of other directories."""
    paths = [*first, *sys.path]  # "" is the current directory
    return {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, paths))}


def running_threads() -> int:
    """Threads that kernels of this process run on."""
    return int(tvm.get_global_func("runtime.NumThreads")())


def free_cores() -> frozenset[int]:
    """Cores of the calling thread that no thread of this process is bound to; none if none is."""
    allowed = os.sched_getaffinity(0)
    others = [_affinity(thread.id) for thread in psutil.Process().threads()]
    bound = frozenset().union(*(cores for cores in others if len(cores) == 1))
    return frozenset(allowed - bound) if bound & allowed else frozenset()


def _affinity(thread: int) -> frozenset[int]:
    try:
        return frozenset(os.sched_getaffinity(thread))
    except ProcessLookupError:  # it has just ended
        return frozenset()


@contextmanager
def on_cores(cores: Collection[int]) -> Iterator[None]:
    """Keeps the calling thread on these cores for a while; on any, if there are none."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def use_threads(count: int) -> None:
    """Lets TVM's kernels of this process run on `count` threads.

    TVM sizes its pool on first use, from the environment or else with half of the processors, and
    never enlarges it afterwards: call this before any kernel runs. Where the environment says
    nothing about binding and spinning, `pool_variables` does. The calling thread keeps its cores:
    TVM would hold it, and all that it starts later, to as many as the pool has threads.

    Raises:
        ArgumentError: count below one, or more than the pool that already runs.
    """
    if count < 1:
        raise ArgumentError("threads", count, "must be a positive integer")
    os.environ.update(pool_variables(count) | os.environ | {THREADS_VARIABLE: str(count)})
    with on_cores(os.sched_getaffinity(0)):
        tvm.get_global_func("runtime.config_threadpool")(1, count)
    running = running_threads()
    if running != count:
        remedy = (
            f"TVM already runs with {running}; set {THREADS_VARIABLE} before the process starts"
        )
        raise ArgumentError("threads", count, remedy)


def start_threads(threads: int | None) -> int:
    """Lets TVM's kernels of this process run on so many threads, on all cores for None, or with a
    warning on as many as TVM's pool holds, if it runs already; returns their number.

    Raises:
        ArgumentError: more threads than TVM's pool, which is started already, holds.
    """
    if threads is not None:
        use_threads(threads)
        return threads
    try:
        use_threads(available_cores())
    except ArgumentError as error:
        warnings.warn(f"the network will not use all cores; {error}", RuntimeWarning, stacklevel=3)
    return running_threads()
