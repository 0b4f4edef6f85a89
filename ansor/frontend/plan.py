"""The order in which a network calls its functions, and what they hand on to each other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import GenericConst

from ansor.frontend.rewrite import op_name
from ansor.frontend.signature import entry_of
from ansor.measure.plan import Call, CallPlan


def call_plan(mod: tvm.IRModule) -> CallPlan:
    """The plan of an optimised module; storages are shared as a compiler would share them."""
    return _Planner(mod[entry_of(mod)]).plan()


class _Planner:
    """Follows every tensor from its producer to its last consumer."""

    def __init__(self, function: Any) -> None:
        self._tensors: dict[Any, tuple[int, ...]] = {}  # variable to the tensors it stands for
        self._bytes: list[int] = []
        self._calls: list[tuple[str, list[int | None], list[int]]] = []
        self._kept: set[int] = set()  # inputs and outputs: never reused
        for param in function.params:
            self._kept.update(self._define(param, param.ty))
        for block in function.body.blocks:
            for binding in block.bindings:
                self._bind(binding.var, binding.value)
        self._kept.update(self._of(function.body.body))

    def plan(self) -> CallPlan:
        last = {
            t: i for i, (_, inputs, _) in enumerate(self._calls) for t in inputs if t is not None
        }
        storage_of: dict[int, int] = {}
        sizes: list[int] = []
        free: list[int] = []
        calls = []
        for t in sorted(self._kept):
            storage_of[t] = _taken(self._bytes[t], sizes, [])
        for i, (name, inputs, outputs) in enumerate(self._calls):
            for t in outputs:
                storage_of.setdefault(t, -1)
                if storage_of[t] < 0:
                    storage_of[t] = _taken(self._bytes[t], sizes, free)
            places = [None if t is None else storage_of[t] for t in inputs]
            calls.append(Call(name, (*places, *(storage_of[t] for t in outputs))))
            ended = {t for t in (*inputs, *outputs) if t is not None and last.get(t, i) == i}
            free += [storage_of[t] for t in sorted(ended - self._kept)]
        return CallPlan(tuple(calls), tuple(sizes))

    def _define(self, variable: Any, ty: Any) -> tuple[int, ...]:
        """New tensors for a variable."""
        fields = list(ty.fields) if isinstance(ty, relax.TupleType) else [ty]
        first = len(self._bytes)
        self._bytes += map(_num_bytes, fields)
        self._tensors[variable] = tuple(range(first, len(self._bytes)))
        return self._tensors[variable]

    def _of(self, expr: Any) -> tuple[int, ...]:
        """The tensors of an expression; none for a constant."""
        if isinstance(expr, relax.Tuple):
            return tuple(t for field in expr.fields for t in self._of(field))
        if isinstance(expr, relax.TupleGetItem):
            return (self._of(expr.tuple_value)[int(expr.index)],)
        return self._tensors.get(expr, ()) if isinstance(expr, relax.Var) else ()

    def _bind(self, variable: Any, value: Any) -> None:
        if op_name(value) == "relax.call_tir":
            inputs = list(_inputs(self, value.args[1].fields))
            outputs = self._define(variable, value.ty)
            self._calls.append((str(value.args[0].name_hint), inputs, list(outputs)))
            return
        if isinstance(value, relax.Call):  # a view of its first operand
            self._tensors[variable] = self._of(value.args[0])
            return
        self._tensors[variable] = self._of(value)


def _inputs(planner: _Planner, fields: Any) -> Iterator[int | None]:
    for field in fields:
        yield None if isinstance(field, GenericConst) else planner._of(field)[0]


def _taken(size: int, sizes: list[int], free: list[int]) -> int:
    """A free storage that is large enough, the smallest; else a new one."""
    fitting = [s for s in free if sizes[s] >= size]
    if fitting:
        best = min(fitting, key=lambda s: sizes[s])
        free.remove(best)
        return best
    sizes.append(size)
    return len(sizes) - 1


def _num_bytes(ty: Any) -> int:
    return math.prod(int(size) for size in ty.shape) * np.dtype(str(ty.dtype)).itemsize
