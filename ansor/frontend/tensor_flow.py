"""The tensors that the functions of a network read and write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import relax

from ansor.frontend.rewrite import op_name
from ansor.frontend.signature import entry_of
from ansor.measure.function_arguments import num_bytes

VIEW = "relax.reshape"  # the operator of a view


def tensor_flow(mod: tvm.IRModule) -> TensorFlow:
    """The tensors of an optimised module, and the calls that make and read them."""
    flow = TensorFlow()
    function = mod[entry_of(mod)]
    for param in function.params:
        flow.inputs.update(flow.define(param, param.ty))
    flow.kept.update(flow.inputs)
    for block in function.body.blocks:
        for binding in block.bindings:
            flow.bind(binding.var, binding.value)
    flow.kept.update(flow.tensors_of(function.body.body))
    return flow


@dataclass(frozen=True)
class Use:
    """One call of a function.

    Attributes:
        function: its name.
        inputs: numbers of the tensors that it reads, None for a weight.
        outputs: numbers of the tensors that it makes.
    """

    function: str
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]

    @property
    def tensors(self) -> set[int]:
        """Numbers of all tensors that the call reads or makes."""
        return {t for t in (*self.inputs, *self.outputs) if t is not None}


@dataclass(eq=False)
class TensorFlow:
    """Tensors by number. A view has the number of the tensor that it shows.

    Attributes:
        num_bytes: of each.
        dtypes: of each.
        uses: the calls in their order.
        inputs: those of the network.
        kept: inputs and outputs of the network, whose storage serves nothing else.
        pinned: tensors that something else than a function or a view reads.
    """

    num_bytes: list[int] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    inputs: set[int] = field(default_factory=set)
    kept: set[int] = field(default_factory=set)
    pinned: set[int] = field(default_factory=set)
    _variables: dict[Any, tuple[int, ...]] = field(default_factory=dict)

    def define(self, variable: Any, ty: Any) -> tuple[int, ...]:
        """New tensors for a variable."""
        fields = list(ty.fields) if isinstance(ty, relax.TupleType) else [ty]
        first = len(self.num_bytes)
        self.num_bytes += map(num_bytes, fields)
        self.dtypes += [str(part.dtype) for part in fields]
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
            self.uses.append(Use(str(value.args[0].name_hint), inputs, outputs))
            return
        is_call = isinstance(value, relax.Call)
        if is_call and op_name(value) != VIEW:
            self.pinned.update(t for arg in value.args for t in self.tensors_of(arg))
        self._variables[variable] = self.tensors_of(value.args[0] if is_call else value)

    def _input(self, operand: Any) -> int | None:
        tensors = self.tensors_of(operand)
        return tensors[0] if tensors else None  # none: a weight, or a view of one
