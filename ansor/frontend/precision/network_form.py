"""A network in which some calls multiply short floats: the short tensors, and the module.

A tensor is stored in the short dtype if the call that makes it, or one that reads it, is short.
There are three exceptions:

- Results of the network keep their dtypes.
- Tensors that only normalisations, softmax and reductions read stay in float32. These functions
  would convert each value back. The error of a network is a quarter less (BERT: normalised mean
  squared error of 1.3e-4 against 1.6e-4).
- A function without arithmetic keeps values, and so its results are short if its operands are.

So each conversion is a part of an existing function, and the network has the same calls as before.
The one exception is an input of the network that a short product multiplies. A separate function
converts it, and every call reads the copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy.typing as npt
import tvm

from ansor.dag.contraction import product_dtypes
from ansor.dag.from_tir.read import read_dag
from ansor.dag.graph import ComputeDAG
from ansor.errors import UnsupportedError
from ansor.frontend.distinct_functions import extract_functions
from ansor.frontend.precision.bias_correction import Run, corrected_biases
from ansor.frontend.precision.biased_product import BiasedProduct, biased_product
from ansor.frontend.precision.function_form import FunctionForm
from ansor.frontend.precision.stages import WIDE, copied_to, is_exact, products_of
from ansor.frontend.tensor_flow import TensorFlow, Use, tensor_flow

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class FunctionFacts:
    """The properties of a function that determine its forms.

    Attributes:
        dag: its graph; None if the function cannot be scheduled, which keeps its form.
        dtypes: of its parameters.
        operands: positions of the parameters that products of matrices multiply, after copies
            such as a padding.
        weights: positions of the constants that only products read.
        multiplies: whether it has products of matrices.
        sums_products: whether it has those or other sums of products, as of a depthwise
            convolution.
        is_exact: whether it only selects among its operands' values.
        biased: its product, if that has a bias which may be corrected.
    """

    dag: ComputeDAG | None
    dtypes: tuple[str, ...]
    operands: frozenset[int] = frozenset()
    weights: frozenset[int] = frozenset()
    multiplies: bool = False
    sums_products: bool = False
    is_exact: bool = False
    biased: BiasedProduct | None = None


@dataclass(frozen=True, eq=False)
class NetworkForms:
    """The calls of an optimised module, and the forms that they may take.

    Attributes:
        mod: the module in float32.
        flow: its tensors and calls.
        functions: properties of each function, by name.
        dtype: the short one.
        biases: replaced operands of calls that multiply short floats, by the number of the call:
            the position of the operand, and its values.
    """

    mod: tvm.IRModule
    flow: TensorFlow
    functions: Mapping[str, FunctionFacts]
    dtype: str
    biases: Mapping[int, tuple[int, Array]] = field(default_factory=dict)

    @property
    def multiplying(self) -> frozenset[int]:
        """Numbers of the calls that have products."""
        uses = enumerate(self.flow.uses)
        return frozenset(i for i, use in uses if self.functions[use.function].multiplies)

    def function_of(self, call: int) -> str:
        """The function of a call, by its number."""
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
        """Numbers of the tensors that are read by a function with a gain from a short dtype."""
        facts = [(use, self.functions[use.function]) for use in self.flow.uses]
        readers = [use for use, own in facts if own.sums_products or own.is_exact]
        return {tensor for use in readers for tensor in use.inputs if tensor is not None}

    @cached_property
    def _unscheduled(self) -> set[int]:
        """Numbers of the tensors that functions without a graph read or write."""
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
        biased=biased_product(func, dag, constants),
    )


def with_corrected_biases(network: NetworkForms, run: Run) -> NetworkForms:
    """`network` with biases that correct the mean error of rounded weights.

    Args:
        run: computes the outputs of modules on calibration inputs.
    """
    facts = network.functions.items()
    products = {name: own.biased for name, own in facts if own.biased is not None}
    found = corrected_biases(network.mod, products, network.dtype, run)
    return replace(network, biases=found)
