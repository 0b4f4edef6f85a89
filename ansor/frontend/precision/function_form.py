"""Rewrites a function for tensors and products in a shorter dtype.

Sums and all other operations stay in float32. A value is rounded when it is stored, at the end of
its statement. It becomes float32 again when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm import ir, tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm_ffi import structural_map

from ansor.dag.from_tir.read import buffer_names, read_dag
from ansor.dag.graph import ComputeDAG
from ansor.frontend.precision.conversion import converting_nest, narrowed
from ansor.frontend.precision.stages import WIDE, products_of
from ansor.lowering.statements import nests_of, sequence


@dataclass(frozen=True)
class FunctionForm:
    """The dtypes of a network's function.

    Attributes:
        dtypes: of its parameters, in their order.
        operands: dtype of the operands of its products.
    """

    dtypes: tuple[str, ...]
    operands: str = WIDE


def in_form(func: tirx.PrimFunc, form: FunctionForm) -> tirx.PrimFunc:
    """The function with parameters of other dtypes, and with other operands of its products.

    A reduction adds up in float32. If its result is stored in a shorter dtype, or is an operand, a
    further stage converts it. A further stage also converts operands that are float32 parameters.

    Args:
        func: a compute definition, not scheduled.
        form: its dtypes differ from the function's only for float32.

    Raises:
        UnsupportedError: the function is no plain definition.
    """
    rewriting = _plan(func, form)
    nests = [rewriting.conversion(name) for name in rewriting.converted_first]
    for nest, stage in zip(nests_of(func), rewriting.dag.stages.values(), strict=True):
        nests.append(rewriting.nest(nest, stage.name))
        made = [write.buffer for write in stage.writes if write.buffer in rewriting.copies]
        nests += [rewriting.conversion(name) for name in dict.fromkeys(made)]
    return rewriting.function(func, nests)


@dataclass(frozen=True, eq=False)
class _Rewriting:
    """The buffers of a function in its new form.

    Attributes:
        dag: the graph of the original function.
        names: of its buffers.
        products: stages that multiply short floats, each with the buffers that it multiplies.
        buffers: replacement of each buffer, by name.
        copies: of buffers in a shorter dtype, by name. Products read them, or they are results.
        results: names of the copies that are parameters.
    """

    dag: ComputeDAG
    names: Mapping[Any, str]
    products: Mapping[str, frozenset[str]]
    buffers: Mapping[str, Any]
    copies: Mapping[str, Any] = field(default_factory=dict)
    results: frozenset[str] = frozenset()

    @property
    def converted_first(self) -> list[str]:
        """Names of the parameters that are converted first."""
        return [name for name in self.copies if self.dag.buffers[name].kind == "input"]

    def conversion(self, name: str) -> Any:
        """The loops that make the copy of a buffer."""
        copy = self.copies[name]
        return converting_nest(self.buffers[name], copy, f"{name}_{copy.dtype}")

    def nest(self, nest: Any, stage: str) -> Any:
        """The loops of a stage with other buffers."""
        copied = self.products.get(stage, frozenset()) & self.copies.keys()

        def buffer_of(old: Any) -> Any:
            name = self.names[old]
            return self.copies[name] if name in copied else self.buffers[name]

        def load(old: Any) -> Any:
            buffer = buffer_of(old.source)
            value = tirx.BufferLoad(buffer, old.indices)
            same = str(buffer.dtype) == str(old.source.dtype)
            return value if same else tirx.Cast(str(old.source.dtype), value)

        def store(old: Any) -> Any:
            buffer = buffer_of(old.buffer)
            return tirx.BufferStore(buffer, narrowed(old.value, str(buffer.dtype)), old.indices)

        def region(old: Any) -> Any:
            return tirx.BufferRegion(buffer_of(old.source), old.region)

        rules = [(ir.TensorLoad, load), (tirx.BufferStore, store), (ir.TensorRegion, region)]
        return structural_map(nest, rules)

    def function(self, func: tirx.PrimFunc, nests: Sequence[Any]) -> tirx.PrimFunc:
        """The function with these nests instead of its own."""
        names = [self.names[param] for param in func.params]
        params = [(self.copies if n in self.results else self.buffers)[n] for n in names]
        own = [*self.buffers.values(), *self.copies.values()]
        allocated = [buffer for buffer in own if not any(buffer.same_as(p) for p in params)]
        root = func.body.block
        block = SBlock([], [], [], root.name_hint, sequence(*nests), None, allocated)
        body = SBlockRealize([], True, block)
        return tirx.PrimFunc(params, body, func.ret_type, func.attrs)


def _plan(func: tirx.PrimFunc, form: FunctionForm) -> _Rewriting:
    dag, names = read_dag(func), buffer_names(func)
    params = dict(zip((names[p] for p in func.params), form.dtypes, strict=True))
    products = products_of(dag) if form.operands != WIDE else {}
    operands = frozenset[str]().union(*products.values())
    reduced = {w.buffer for stage in dag.stages.values() if stage.reduce for w in stage.writes}
    buffers, copies, results = {}, {}, set()
    for buffer, name in names.items():
        dtype = params.get(name, form.operands if name in operands else str(buffer.dtype))
        in_place = dtype == str(buffer.dtype) or name not in reduced
        buffers[name] = _like(buffer, dtype) if in_place else _like(buffer, str(buffer.dtype))
        if not in_place:
            copies[name] = _like(buffer, dtype)
            results |= {name} & params.keys()
        elif name in operands and dtype != form.operands:
            copies[name] = _like(buffer, form.operands)
    return _Rewriting(dag, names, products, buffers, copies, frozenset(results))


def _like(buffer: Any, dtype: str) -> Any:
    """A buffer of the same shape; the same one for its own dtype."""
    if str(buffer.dtype) == dtype:
        return buffer
    return tirx.decl_buffer(buffer.shape, dtype, str(buffer.name), layout=None)
