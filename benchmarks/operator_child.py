"""One system on one operator; ``python -m benchmarks.operator_child SYSTEM CASE``.

The system has a separate process, because idle threads of a pool spin and disturb the next
measurement. Its output goes to "SYSTEM.npy" of the case's folder; then it takes its turns.
PyTorch's time is that of a call from Python, as for its users.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from ansor.compare.turns import LATENCY, Answer, answer_turns
from benchmarks.operator_case import PEAK, Case
from benchmarks.operator_peers import OURS

# The output, notes on the system, and the function that times a turn.
Loaded = tuple[Any, Answer, Callable[[], Answer]]


def _ours(case: Case, system: str) -> Loaded:
    """The program that the parent saved, and right after each turn the machine's peak."""
    from tvm.ir import load_json

    from benchmarks.operator_peak import INSTRUCTION, peak_instruction, peak_meter
    from benchmarks.tvm_timing import ready_function

    func = load_json(case.program(system).read_text(encoding="utf-8"))
    output, seconds = ready_function(func, case, exact=False)
    peak, instruction = peak_meter(case), peak_instruction(case)

    def turn() -> Answer:
        return {LATENCY: seconds(), **({} if peak is None else {PEAK: peak()})}

    return output, {} if instruction is None else {INSTRUCTION: instruction.name}, turn


def metaschedule(case: Case) -> Loaded:
    """MetaSchedule's best program, from its cache or tuned now."""
    from benchmarks.peers_metaschedule import best
    from benchmarks.tvm_timing import ready_function

    func, notes = best(case)
    output, seconds = ready_function(func, case, exact=True)
    return output, notes, lambda: {LATENCY: seconds()}


def torch(case: Case) -> Loaded:
    """PyTorch, contiguous."""
    return _torch(case, False)


def torch_channels_last(case: Case) -> Loaded:
    """PyTorch, activations and weights channels last."""
    return _torch(case, True)


def _torch(case: Case, channels_last: bool) -> Loaded:
    from benchmarks.torch_timing import ready_torch

    output, seconds = ready_torch(case, channels_last)
    return output, {}, lambda: {LATENCY: seconds()}


SYSTEMS: Mapping[str, Callable[[Case], Loaded]] = MappingProxyType(
    {
        **{name: partial(_ours, system=name) for name in ("ansor", *OURS)},
        "torch": torch,
        "torch_channels_last": torch_channels_last,
        "metaschedule": metaschedule,
    }
)


def load(system: str, case: Case) -> tuple[Answer, Callable[[], Answer]]:
    """Makes a system ready; keeps its output, but only the first time."""
    output, notes, turn = SYSTEMS[system](case)
    if not case.file(f"{system}.npy").exists():
        np.save(case.file(f"{system}.npy"), _storable(output))
    return notes, turn


def _storable(output: Any) -> Any:
    """An array in a dtype that NumPy's files know; those in bfloat16 are exact in float32."""
    return output.astype(np.float32) if output.dtype == ml_dtypes.bfloat16 else output


def main(system: str, case: Case) -> None:
    """Serves until nothing more is asked."""
    answer_turns(lambda: load(system, case))


if __name__ == "__main__":
    main(sys.argv[1], Case(**json.loads(sys.argv[2])))
