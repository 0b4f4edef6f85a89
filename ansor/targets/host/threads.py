"""The number of threads that kernels run on, and the cores of these threads."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from ansor.errors import ArgumentError
from ansor.targets.host import thread_pool as pool
from ansor.targets.host.quota import quota_cores
from ansor.targets.host.thread_pool_code import MAX_WORKERS

THREADS_VARIABLE = "TVM_NUM_THREADS"  # all of them read by TVM's own pools, once
BIND_VARIABLE = "TVM_BIND_THREADS"
SPIN_VARIABLE = "TVM_THREAD_POOL_SPIN_COUNT"
SPIN_COUNT = 2_000  # polls (1 ms) before an idle thread of TVM's pool sleeps; TVM's own: 300000
_SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"

_chosen: int | None = None  # default number of threads for compiling and running


def available_cores() -> int:
    """Physical cores that this process may use; hyper-threads of one core count once.

    A container's share of the processor limits the number, too.
    """
    allowed, physical, quota = allowed_cores(), psutil.cpu_count(logical=False), quota_cores()
    return min(limit for limit in (len(allowed), physical, quota) if limit)


def allowed_cores() -> set[int]:
    """Processors that the affinity of the calling thread allows."""
    return os.sched_getaffinity(0)


def pool_variables(threads: int) -> dict[str, str]:
    """Environment variables of a process whose kernels run on `threads` threads.

    The threads of TVM's own pool, which peers use, are bound to cores like ours.
    """
    return {
        THREADS_VARIABLE: str(threads),
        BIND_VARIABLE: "1",
        SPIN_VARIABLE: str(SPIN_COUNT),
    }


def module_path(*first: str) -> dict[str, str]:
    """Environment variable with which a Python process finds the modules of this one. Modules of
    other directories come first."""
    paths = [*first, *sys.path]  # "" is the current directory
    return {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, paths))}


def running_threads() -> int:
    """Default number of threads for kernels of this process; starts the threads.

    The number is that of the last `use_threads`, else that of the environment (see
    `pool_variables`), else all available cores.
    """
    count = _chosen or _said() or available_cores()
    _start(count)
    return count


def _said() -> int | None:
    said = os.environ.get(THREADS_VARIABLE, "")
    return int(said) if said.isdecimal() else None


def use_threads(count: int) -> None:
    """Lets kernels of this process run on `count` threads from now on; the number may change.

    Raises:
        ArgumentError: count below one, or more than the system allows.
    """
    global _chosen
    if not 1 <= count <= MAX_WORKERS + 1:
        raise ArgumentError("threads", count, f"must be between 1 and {MAX_WORKERS + 1}")
    _start(count)
    _chosen = count


def start_threads(threads: int | None) -> int:
    """Lets kernels of this process run on a number of threads from now on, on all cores for None;
    returns the number.

    Raises:
        ArgumentError: a number below one, or more than the system allows.
    """
    count = available_cores() if threads is None else threads
    use_threads(count)
    return count


def _start(count: int) -> None:
    """Raises an `ArgumentError` where the system does not allow this number of threads."""
    if pool.num_threads() >= count:
        return
    try:
        pool.start(count, _one_per_core(allowed_cores()))
    except OSError as error:
        raise ArgumentError("threads", count, f"{error}; ask for fewer") from error


def _one_per_core(allowed: Collection[int]) -> list[int]:
    """Processors: a single one for each core."""
    found: dict[str, int] = {}
    for number in sorted(allowed):
        found.setdefault(_siblings(number), number)
    return list(found.values())


def _siblings(processor: int) -> str:
    """A text that only the hyper-threads of one core share."""
    try:
        return Path(_SIBLINGS.format(processor)).read_text()
    except OSError:  # the system has no such file: each processor is a core
        return str(processor)


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    """Lets loops of the calling thread run on a number of threads inside the context. The calling
    thread leaves the cores of the others. Loops run on it alone while another thread has the pool.

    Workers are bound to cores, and the caller does not run on these. Without this, Linux woke
    sleeping workers on the caller's core. Of bursts of kernels at intervals of 50 ms, 60 % ran at
    half speed, against 1 % with bound workers.
    """
    _start(count)
    with pool.holding(count) as held, on_cores(free_cores(count) if held else ()):
        yield


def free_cores(threads: int | None = None) -> frozenset[int]:
    """Cores of the calling thread without a bound worker; none if no worker is bound.

    Args:
        threads: number of threads of a loop, with the calling one; by default all.
    """
    bound = pool.cores_of_workers(threads or pool.num_threads())
    allowed = allowed_cores()
    return frozenset(allowed - bound) if bound & allowed else frozenset()


@contextmanager
def on_cores(cores: Collection[int]) -> Iterator[None]:
    """Keeps the calling thread on these cores inside the context; on any core if there are none."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
