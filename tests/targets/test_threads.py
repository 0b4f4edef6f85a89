"""How TVM's threads are set up."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ansor.targets.host.threads import (
    available_cores,
    on_cores,
    pool_variables,
    use_threads,
)

_SCRIPT = """
import json, os
import tvm
from ansor.targets.cpu.probe import benchmark_kernels
from ansor.targets.cpu.probe.meter import _zeros
from ansor.targets.host.threads import free_cores, on_cores, use_threads
before = free_cores()
use_threads(2)
module = benchmark_kernels.touch(2, parallel=True)
built = tvm.compile(module, tvm.target.Target("llvm"))
built["main"](*[_zeros(buffer) for buffer in module["main"].params])
tasks = [int(task) for task in os.listdir("/proc/self/task")]
bound = [cores for cores in map(os.sched_getaffinity, tasks) if len(cores) == 1]
allowed = os.sched_getaffinity(0)
with on_cores(free_cores()):
    inside = os.sched_getaffinity(0)
found = [before, set().union(*bound), free_cores(), inside, os.sched_getaffinity(0), allowed]
print(json.dumps([sorted(cores) for cores in found]))
"""


@pytest.mark.skipif(available_cores() < 2, reason="needs two cores")
def test_the_caller_is_kept_off_the_cores_of_the_pool() -> None:
    names = pool_variables(2)
    bare = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], env=bare, capture_output=True, text=True, check=True
    )
    before, bound, free, inside, after, allowed = map(set, json.loads(done.stdout))
    assert before == set()
    assert bound
    assert free == inside == allowed - bound
    assert after == allowed


def test_no_cores_are_any_cores() -> None:
    before = os.sched_getaffinity(0)
    with on_cores(frozenset()):
        assert os.sched_getaffinity(0) == before


def test_affinity_comes_back_after_an_error() -> None:
    before = os.sched_getaffinity(0)
    inside: list[set[int]] = []

    def fail() -> None:
        with on_cores({min(before)}):
            inside.append(os.sched_getaffinity(0))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert inside == [{min(before)}]
    assert os.sched_getaffinity(0) == before


def test_the_caller_keeps_its_cores() -> None:
    script = f"import os; from {use_threads.__module__} import use_threads; "
    script += "before = os.sched_getaffinity(0); use_threads(1); "
    script += "print(os.sched_getaffinity(0) == before)"
    python = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=python, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True"


def test_the_environment_says_how_many_and_stays() -> None:
    script = f"import os; from {use_threads.__module__} import running_threads; "
    script += "before = dict(os.environ); print(running_threads(), before == dict(os.environ))"
    said = os.environ | {"TVM_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=said, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "True"]
