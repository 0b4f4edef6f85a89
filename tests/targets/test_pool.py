"""The threads that parallel loops run on."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm

from ansor.targets.cpu.probe import benchmark_kernels
from ansor.targets.host import thread_pool as pool
from ansor.targets.host.threads import available_cores, on_threads, running_threads, use_threads

_PARTS = 2


def _touch() -> tuple[Any, list[Any]]:
    """A parallel loop that adds one to each element, and its arguments."""
    running_threads()
    module = benchmark_kernels.touch(_PARTS, parallel=True)
    arrays = [
        tvm.runtime.tensor(np.zeros([int(n) for n in buffer.shape], "float32"))
        for buffer in module["main"].params
    ]
    return tvm.compile(module, tvm.target.Target("llvm")).mod, arrays


def _seconds_of_workers() -> list[float]:
    """CPU time of all threads of this process but the calling one."""
    own = threading.get_native_id()
    found = [int(task) for task in os.listdir("/proc/self/task") if int(task) != own]
    stats = [Path(f"/proc/self/task/{task}/schedstat").read_text().split()[0] for task in found]
    return [int(nanoseconds) / 1e9 for nanoseconds in stats]


def test_threads_may_be_more_and_fewer_at_any_time() -> None:
    before = dict(os.environ)
    for count in (1, 3, 2):
        use_threads(count)
        assert running_threads() == count
    assert pool.num_threads() >= 3
    assert dict(os.environ) == before
    use_threads(available_cores())


def test_a_second_caller_runs_alone() -> None:
    module, arrays = _touch()
    held: list[bool] = []

    def call() -> None:
        with pool.holding(2) as mine:
            held.append(mine)
            module["main"](*arrays)

    with on_threads(2):
        module["main"](*arrays)
        thread = threading.Thread(target=call)
        thread.start()
        thread.join(30)
        assert not thread.is_alive()
    assert held == [False]
    with pool.holding(2) as mine:
        assert mine


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    module, arrays = _touch()
    module["main"](*arrays)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        use_threads(2)
        for _ in range(100):
            module["main"](*arrays)
        os.write(write, str(pool.num_threads()).encode())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert os.read(read, 10) == b"2"
    os.close(read)
    os.close(write)


@pytest.mark.skipif(available_cores() < 2, reason="needs two cores")
def test_a_worker_helps() -> None:
    use_threads(2)
    module, arrays = _touch()
    before = sum(_seconds_of_workers())
    with on_threads(2):
        for _ in range(2000):
            module["main"](*arrays)
    assert sum(_seconds_of_workers()) > before
