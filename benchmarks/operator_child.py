"""Times one system on one operator; ``python -m benchmarks.operator_child SYSTEM CASE``.

In a process of its own, since pools of threads that have just been idle disturb whoever is timed
next. What was found goes to "SYSTEM.json" of the case's folder, the output to "SYSTEM.npy".
PyTorch's time is that of a call from Python, as its users see it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from benchmarks.operator_case import Case

Found = tuple[float, Any, dict[str, Any]]  # seconds, output, and whatever else is to be told


def ansor(case: Case) -> Found:
    """The program that the parent tuned and saved, and right after it the machine's peak."""
    return _saved(case, "ansor")


def zero(case: Case) -> Found:
    """The program that the parent chose without measuring, and the peak."""
    return _saved(case, "zero")


def _saved(case: Case, system: str) -> Found:
    from tvm.ir import load_json

    from ansor.hardware.detect import peak_gflops_here
    from ansor.hardware.target import resolve_target
    from benchmarks.tvm_timing import time_function

    func = load_json(case.program(system).read_text(encoding="utf-8"))
    found = time_function(func, case, exact=False)
    peak = peak_gflops_here(resolve_target(case.target), case.threads)
    return (*found, {"peak_gflops": peak})


def metaschedule(case: Case) -> Found:
    """MetaSchedule's best program, from its cache or tuned now."""
    from benchmarks.peers_metaschedule import best
    from benchmarks.tvm_timing import time_function

    func, notes = best(case)
    return (*time_function(func, case, exact=True), notes)


def torch(case: Case) -> Found:
    """PyTorch, contiguous."""
    return _torch(case, False)


def torch_channels_last(case: Case) -> Found:
    """PyTorch, activations and weights channels last."""
    return _torch(case, True)


def _torch(case: Case, channels_last: bool) -> Found:
    from benchmarks.peers_torch import time_torch

    return (*time_torch(case, channels_last), {})


SYSTEMS: Mapping[str, Callable[[Case], Found]] = MappingProxyType(
    {
        "ansor": ansor,
        "zero": zero,
        "torch": torch,
        "torch_channels_last": torch_channels_last,
        "metaschedule": metaschedule,
    }
)


def run(system: str, case: Case) -> None:
    """Times a system and writes what was found; the output only the first time."""
    latency_s, output, notes = SYSTEMS[system](case)
    if not case.file(f"{system}.npy").exists():
        np.save(case.file(f"{system}.npy"), output)
    text = json.dumps({"latency_s": latency_s, **notes})
    case.file(f"{system}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    run(sys.argv[1], Case(**json.loads(sys.argv[2])))
