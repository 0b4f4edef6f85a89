"""A network with functions in other forms, as a module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import GenericConst

from ansor.frontend.precision.conversion import conversion
from ansor.frontend.precision.function_form import FunctionForm, in_form
from ansor.frontend.precision.network_form import Array, NetworkForms
from ansor.frontend.precision.stages import WIDE
from ansor.frontend.rewrite import constant, op_name, with_functions
from ansor.frontend.signature import entry_of
from ansor.frontend.tensor_flow import VIEW


@dataclass(frozen=True, eq=False)
class ReformedNetwork:
    """A network with functions in other forms.

    Attributes:
        mod: the module.
        origins: of each function that it calls, the name and the form. The name is the function's
            in the module that this one was made from.
        callees: the function that each call of that module has become a call of, in order.
    """

    mod: tvm.IRModule
    origins: Mapping[str, tuple[str, FunctionForm]]
    callees: tuple[str, ...]


def with_forms(network: NetworkForms, forms: Sequence[FunctionForm]) -> ReformedNetwork:
    """The network with its calls in the given forms, one for each call in order."""
    own = {name: FunctionForm(facts.dtypes) for name, facts in network.functions.items()}
    names: dict[tuple[str, FunctionForm], str] = {}
    for use, form in zip(network.flow.uses, forms, strict=True):
        origin = (use.function, form)
        if origin not in names:
            is_own = form == own[use.function]
            names[origin] = use.function if is_own else _free(use.function, network, names)
    made = {
        name: in_form(network.mod[function], form)
        for (function, form), name in names.items()
        if form != own[function]
    }
    extended = with_functions(network.mod, made)
    callees = [names[use.function, f] for use, f in zip(network.flow.uses, forms, strict=True)]
    biases = [
        network.biases.get(number) if form.operands != WIDE else None
        for number, form in enumerate(forms)
    ]
    mod = _Reformer(extended, zip(callees, forms, biases, strict=True)).reformed()
    origins = {name: origin for origin, name in names.items()}
    return ReformedNetwork(mod, origins, tuple(callees))


def _free(function: str, network: NetworkForms, names: Mapping[Any, str]) -> str:
    """A name for another form of a function."""
    taken = {*names.values(), *(v.name_hint for v in network.mod.functions)}
    base, number = f"{function}_{network.dtype}", 1
    while (name := base if number == 1 else f"{base}_{number}") in taken:
        number += 1
    return name


_Call = tuple[str, FunctionForm, tuple[int, Array] | None]


@relax.expr_functor.mutator
class _Reformer(relax.PyExprMutator):  # type: ignore[misc]
    """Calls other functions, on operands of their dtypes.

    Args:
        mod: holds the functions.
        calls: function, form and bias of each call, in order.
    """

    def __init__(self, mod: tvm.IRModule, calls: Iterator[_Call]) -> None:
        super().__init__(mod)
        self.mod, self.calls = mod, calls
        self.copies: dict[tuple[Any, str], Any] = {}

    def reformed(self) -> tvm.IRModule:
        """The module, without the functions that it no longer calls."""
        entry = self.mod.get_global_var(entry_of(self.mod))
        self.builder_.update_func(entry, self.visit_expr(self.mod[entry]))
        return relax.transform.DeadCodeElimination()(self.builder_.get())

    def visit_call_(self, call: Any) -> Any:
        changed = self.visit_expr_post_order(call)
        if op_name(call) == VIEW:
            return relax.op.reshape(*changed.args)
        if op_name(call) != "relax.call_tir":
            return changed
        name, form, bias = next(self.calls)
        operands = list(changed.args[1].fields)
        if bias is not None:
            operands[bias[0]] = constant(bias[1])
        count = len(operands)
        pairs = zip(operands, form.dtypes, strict=False)
        converted = [self._in_dtype(operand, dtype) for operand, dtype in pairs]
        results = self._types(call.ty, form.dtypes[count:])
        return relax.call_tir(self.mod.get_global_var(name), relax.Tuple(converted), results)

    def _in_dtype(self, operand: Any, dtype: str) -> Any:
        """A constant in a dtype, or a copy of a tensor, made once."""
        if str(operand.ty.dtype) == dtype:
            return operand
        if isinstance(operand, GenericConst):
            return constant(operand.value.numpy().astype(np.dtype(dtype)), dtype)
        if (operand, dtype) not in self.copies:
            function = self.builder_.add_func(conversion(operand.ty, dtype), f"to_{dtype}")
            ty = relax.TensorType(operand.ty.shape, dtype)
            copy = relax.call_tir(function, relax.Tuple([operand]), ty)
            self.copies[operand, dtype] = self.builder_.emit(copy)
        return self.copies[operand, dtype]

    def _types(self, ty: Any, dtypes: Sequence[str]) -> Any:
        if isinstance(ty, relax.TupleType):
            pairs = zip(ty.fields, dtypes, strict=True)
            return [relax.TensorType(part.shape, dtype) for part, dtype in pairs]
        (dtype,) = dtypes
        return relax.TensorType(ty.shape, dtype)
