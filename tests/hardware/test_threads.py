"""How TVM's threads are set up."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from ansor.hardware.threads import SPIN_COUNT, pool_variables, use_threads

_SCRIPT = """
import json, os
import tvm
from ansor.hardware import kernels
from ansor.hardware.probe import _zeros
from ansor.hardware.threads import use_threads
use_threads(2)
module = kernels.touch(2, parallel=True)
built = tvm.compile(module, tvm.target.Target("llvm"))
built["main"](*[_zeros(buffer) for buffer in module["main"].params])
tasks = [int(task) for task in os.listdir("/proc/self/task")]
print(json.dumps([sorted(os.sched_getaffinity(task)) for task in tasks]))
"""


def test_no_thread_is_bound_to_a_core() -> None:
    names = pool_variables(2)
    bare = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], env=bare, capture_output=True, text=True, check=True
    )
    affinities = json.loads(done.stdout)
    assert len(affinities) >= 2
    assert all(cores == sorted(os.sched_getaffinity(0)) for cores in affinities)


def test_what_the_environment_says_stays() -> None:
    script = f"import os; from {use_threads.__module__} import use_threads; use_threads(1); "
    script += "print(os.environ['TVM_BIND_THREADS'], os.environ['TVM_THREAD_POOL_SPIN_COUNT'])"
    said = os.environ | {"TVM_BIND_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    said.pop("TVM_THREAD_POOL_SPIN_COUNT", None)
    done = subprocess.run(
        [sys.executable, "-c", script], env=said, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", str(SPIN_COUNT)]
