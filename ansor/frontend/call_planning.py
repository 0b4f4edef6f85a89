"""The order in which a network calls its functions, and the storage of their results."""

from __future__ import annotations

import tvm

from ansor.frontend.tensor_flow import TensorFlow, tensor_flow
from ansor.measure.call_plan import CallPlan, PlannedCall


def call_plan(mod: tvm.IRModule) -> CallPlan:
    """The plan of an optimised module; storage is shared much as the compiler will share it."""
    return _placed(tensor_flow(mod))


def _placed(flow: TensorFlow) -> CallPlan:
    """Storage for every tensor, used again after the last call that reads it."""
    last = {t: i for i, use in enumerate(flow.uses) for t in use.tensors}
    sizes = [flow.num_bytes[t] for t in sorted(flow.kept)]
    storage = {t: i for i, t in enumerate(sorted(flow.kept))}
    free: list[int] = []
    calls = []
    for i, use in enumerate(flow.uses):
        for t in use.outputs:
            if t not in storage:
                storage[t] = _taken(flow.num_bytes[t], sizes, free)
        places = (None if t is None else storage[t] for t in (*use.inputs, *use.outputs))
        calls.append(PlannedCall(use.function, tuple(places)))
        free += [storage[t] for t in sorted(use.tensors - flow.kept) if last[t] == i]
    return CallPlan(tuple(calls), tuple(sizes))


def _taken(size: int, sizes: list[int], free: list[int]) -> int:
    """The smallest free storage that is large enough; else a new one."""
    fitting = [s for s in free if sizes[s] >= size]
    if not fitting:
        sizes.append(size)
        return len(sizes) - 1
    best = min(fitting, key=lambda s: sizes[s])
    free.remove(best)
    return best
