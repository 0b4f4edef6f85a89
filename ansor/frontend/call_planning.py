"""The order in which a network calls its functions, and what they hand on to each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import relax

from ansor.frontend.rewrite import op_name
from ansor.frontend.signature import entry_of
from ansor.measure.call_plan import CallPlan, PlannedCall
from ansor.measure.function_arguments import num_bytes


def call_plan(mod: tvm.IRModule) -> CallPlan:
    """The plan of an optimised module; storage is shared much as the compiler will share it."""
    flow = _Flow()
    function = mod[entry_of(mod)]
    for param in function.params:
        flow.kept.update(flow.define(param, param.ty))
    for block in function.body.blocks:
        for binding in block.bindings:
            flow.bind(binding.var, binding.value)
    flow.kept.update(flow.tensors_of(function.body.body))
    return _placed(flow)


@dataclass(frozen=True)
class _Use:
    """One call: tensors that it reads (None: a weight) and those that it makes."""

    function: str
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]

    @property
    def tensors(self) -> set[int]:
        return {t for t in (*self.inputs, *self.outputs) if t is not None}


@dataclass(eq=False)
class _Flow:
    """Tensors by number.

    Attributes:
        num_bytes: of each.
        uses: the calls in their order.
        kept: inputs and outputs of the network, whose storage serves nothing else.
    """

    num_bytes: list[int] = field(default_factory=list)
    uses: list[_Use] = field(default_factory=list)
    kept: set[int] = field(default_factory=set)
    _variables: dict[Any, tuple[int, ...]] = field(default_factory=dict)

    def define(self, variable: Any, ty: Any) -> tuple[int, ...]:
        """New tensors for a variable."""
        fields = list(ty.fields) if isinstance(ty, relax.TupleType) else [ty]
        first = len(self.num_bytes)
        self.num_bytes += map(num_bytes, fields)
        self._variables[variable] = tuple(range(first, len(self.num_bytes)))
        return self._variables[variable]

    def tensors_of(self, expr: Any) -> tuple[int, ...]:
        """The tensors that an expression stands for; none for a constant."""
        if isinstance(expr, relax.Tuple):
            return tuple(t for part in expr.fields for t in self.tensors_of(part))
        if isinstance(expr, relax.TupleGetItem):
            return (self.tensors_of(expr.tuple_value)[int(expr.index)],)
        return self._variables.get(expr, ()) if isinstance(expr, relax.Var) else ()

    def bind(self, variable: Any, value: Any) -> None:
        """Takes in one binding: a call, a view of what its first operand stands for, or a name."""
        if op_name(value) == "relax.call_tir":
            inputs = tuple(self._input(operand) for operand in value.args[1].fields)
            outputs = self.define(variable, value.ty)
            self.uses.append(_Use(str(value.args[0].name_hint), inputs, outputs))
            return
        source = value.args[0] if isinstance(value, relax.Call) else value
        self._variables[variable] = self.tensors_of(source)

    def _input(self, operand: Any) -> int | None:
        tensors = self.tensors_of(operand)
        return tensors[0] if tensors else None  # none: a weight, or a view of one


def _placed(flow: _Flow) -> CallPlan:
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
