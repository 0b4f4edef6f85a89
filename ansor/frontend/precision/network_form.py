"""A network some of whose calls multiply short floats: which tensors they store, and the module.

A tensor is stored in the short dtype if the call that makes it, or one that reads it, is short.
There are three exceptions:

- Results of the network keep their dtypes.
- What only normalisations, softmax and reductions read stays in float32. They would convert each
  value back, and a network has a quarter less error (BERT: normalised mean squared error of 1.3e-4
  for 1.6e-4).
- What a function without arithmetic makes of short tensors is short, because it has their values.

So each conversion is a part of a function that is there anyway, and the network has the same calls
as before. The one exception is an input of the network that a short product multiplies. A function
of its own converts it, and every call reads the copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import GenericConst

from ansor.dag.contraction import product_dtypes
from ansor.dag.from_tir.read import read_dag
from ansor.dag.graph import ComputeDAG
from ansor.errors import UnsupportedError
from ansor.frontend.distinct_functions import extract_functions
from ansor.frontend.precision.conversion import conversion
from ansor.frontend.precision.function_form import FunctionForm, in_form
from ansor.frontend.precision.stages import WIDE, copied_to, is_exact, products_of
from ansor.frontend.rewrite import constant, op_name, with_functions
from ansor.frontend.signature import entry_of
from ansor.frontend.tensor_flow import VIEW, TensorFlow, Use, tensor_flow


@dataclass(frozen=True, eq=False)
class FunctionFacts:
    """What decides on the forms of a function.

    Attributes:
        dag: its graph; None if the function cannot be scheduled, which keeps its form.
        dtypes: of its parameters.
        operands: positions of the parameters that products of matrices multiply, after copies
            such as a padding.
        weights: positions of the constants that nothing but products reads.
        multiplies: whether it has products of matrices.
        sums_products: whether it has those or other sums of products, as of a depthwise
            convolution.
        is_exact: whether it only selects among the values that it is given.
    """

    dag: ComputeDAG | None
    dtypes: tuple[str, ...]
    operands: frozenset[int] = frozenset()
    weights: frozenset[int] = frozenset()
    multiplies: bool = False
    sums_products: bool = False
    is_exact: bool = False


@dataclass(frozen=True, eq=False)
class NetworkForms:
    """The calls of an optimised module, and the forms that they may take.

    Attributes:
        mod: the module in float32.
        flow: its tensors and calls.
        functions: what is known of each function, by name.
        dtype: the short one.
    """

    mod: tvm.IRModule
    flow: TensorFlow
    functions: Mapping[str, FunctionFacts]
    dtype: str

    @property
    def multiplying(self) -> frozenset[int]:
        """Numbers of the calls that have products."""
        uses = enumerate(self.flow.uses)
        return frozenset(i for i, use in uses if self.functions[use.function].multiplies)

    def function_of(self, call: int) -> str:
        """The function that a call, by its number, is of."""
        return self.flow.uses[call].function

    def calls_of(self, functions: Collection[str]) -> frozenset[int]:
        """Numbers of the calls of functions that have products."""
        return frozenset(i for i in self.multiplying if self.function_of(i) in functions)

    def operations_of(self, function: str) -> int:
        """Floating-point operations of all calls of a function."""
        dag = self.functions[function].dag
        calls = sum(use.function == function for use in self.flow.uses)
        return 0 if dag is None else calls * dag.flops

    def stored_short(self, short: Collection[int]) -> frozenset[int]:
        """Numbers of the tensors that are stored in the short dtype.

        Args:
            short: numbers of the calls that are short.
        """
        fixed = self.flow.kept | self.flow.pinned | self._unscheduled
        touched = {t for number in short for t in self.flow.uses[number].tensors}
        stored = self._wide(touched & self._read_short) - fixed
        for use in self.flow.uses:
            has_values = bool(use.inputs) and stored.issuperset(use.inputs)
            if self.functions[use.function].is_exact and has_values:
                stored |= self._wide(use.outputs) - fixed
        return frozenset(stored | self._multiplied_inputs(short))

    @cached_property
    def _read_short(self) -> set[int]:
        """Numbers of the tensors that a function reads which gains from a short dtype."""
        facts = [(use, self.functions[use.function]) for use in self.flow.uses]
        readers = [use for use, own in facts if own.sums_products or own.is_exact]
        return {tensor for use in readers for tensor in use.inputs if tensor is not None}

    @cached_property
    def _unscheduled(self) -> set[int]:
        """Numbers of the tensors that functions without a graph read or make."""
        bare = [use for use in self.flow.uses if self.functions[use.function].dag is None]
        return {tensor for use in bare for tensor in use.tensors}

    def _multiplied_inputs(self, short: Collection[int]) -> set[int]:
        """Numbers of the network's inputs that short products multiply."""
        uses = [self.flow.uses[number] for number in short]
        read = [use.inputs[i] for use in uses for i in self.functions[use.function].operands]
        return self._wide(read) & self.flow.inputs

    def _wide(self, tensors: Iterable[int | None]) -> set[int]:
        """Numbers of those tensors that are in float32."""
        return {t for t in tensors if t is not None and self.flow.dtypes[t] == WIDE}

    def forms(self, short: Collection[int]) -> list[FunctionForm]:
        """The form of each call, in order; argument as for `stored_short`."""
        stored = self.stored_short(short)
        uses = enumerate(self.flow.uses)
        return [self._form(use, stored, number in short) for number, use in uses]

    def _form(self, use: Use, stored: Collection[int], is_short: bool) -> FunctionForm:
        facts = self.functions[use.function]
        if facts.dag is None:
            return FunctionForm(facts.dtypes)
        multiplies = is_short and facts.multiplies
        tensors = (*use.inputs, *use.outputs)
        dtypes = tuple(
            self.dtype if tensor in stored or (multiplies and position in facts.weights) else own
            for position, (tensor, own) in enumerate(zip(tensors, facts.dtypes, strict=True))
        )
        return FunctionForm(dtypes, self.dtype if multiplies else WIDE)


def network_forms(mod: tvm.IRModule, dtype: str) -> NetworkForms:
    """The forms that the calls of an optimised module may take.

    Args:
        mod: in float32.
        dtype: the short one.
    """
    functions = {
        function.name: _facts(function.func, function.constants)
        for function in extract_functions(mod)
    }
    return NetworkForms(mod, tensor_flow(mod), functions, dtype)


def _facts(func: Any, constants: Collection[int]) -> FunctionFacts:
    dtypes = tuple(str(param.dtype) for param in func.params)
    try:
        dag = read_dag(func, constants)
    except UnsupportedError:
        return FunctionFacts(None, dtypes)
    products = products_of(dag)
    multiplied = frozenset[str]().union(*products.values())
    others = {r.buffer for s in dag.stages.values() if s.name not in products for r in s.reads}
    params = dict(zip(dag.buffers, range(len(dtypes)), strict=False))
    weights = {params[buffer] for buffer in multiplied - others if buffer in params}
    return FunctionFacts(
        dag,
        dtypes,
        frozenset(params[buffer] for buffer in copied_to(dag, multiplied) if buffer in params),
        frozenset(weights & set(constants)),
        multiplies=bool(products),
        sums_products=any(product_dtypes(dag, name) for name in dag.stages),
        is_exact=all(map(is_exact, dag.stages.values())),
    )


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
    mod = _Reformer(extended, zip(callees, forms, strict=True)).reformed()
    origins = {name: origin for origin, name in names.items()}
    return ReformedNetwork(mod, origins, tuple(callees))


def _free(function: str, network: NetworkForms, names: Mapping[Any, str]) -> str:
    """A name for another form of a function."""
    taken = {*names.values(), *(v.name_hint for v in network.mod.functions)}
    base, number = f"{function}_{network.dtype}", 1
    while (name := base if number == 1 else f"{base}_{number}") in taken:
        number += 1
    return name


@relax.expr_functor.mutator
class _Reformer(relax.PyExprMutator):  # type: ignore[misc]
    """Calls other functions, on operands of their dtypes.

    Args:
        mod: holds the functions.
        calls: function and form of each call, in order.
    """

    def __init__(self, mod: tvm.IRModule, calls: Iterator[tuple[str, FunctionForm]]) -> None:
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
        name, form = next(self.calls)
        operands = changed.args[1].fields
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
