"""Changes of one stage's nest of loops in a compute definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import ir, tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm_ffi import structural_map

from ansor.dag.from_tir.zeros import is_condition, is_zero
from ansor.lowering.statements import collect


def with_buffers(nest: Any, buffers: Mapping[Any, Any]) -> Any:
    """The nest with other buffers of the same dtypes."""

    def load(old: Any) -> Any:
        return tirx.BufferLoad(buffers.get(old.source, old.source), old.indices)

    def store(old: Any) -> Any:
        return tirx.BufferStore(buffers.get(old.buffer, old.buffer), old.value, old.indices)

    def region(old: Any) -> Any:
        return tirx.BufferRegion(buffers.get(old.source, old.source), old.region)

    rules = [(ir.TensorLoad, load), (tirx.BufferStore, store), (ir.TensorRegion, region)]
    return structural_map(nest, rules)


def with_extent(nest: Any, axis: int, size: int) -> Any:
    """The nest with another extent of one axis, and of its loop."""
    realize = collect(nest, SBlockRealize)[0]
    variable = realize.iter_values[axis]

    def loop(old: tirx.For) -> Any:
        if not old.loop_var.same_as(variable):
            return old
        extent = tirx.const(size, str(old.extent.ty.dtype))
        return tirx.For(old.loop_var, old.min, extent, old.kind, old.body)

    def block(old: SBlock) -> Any:
        variables = list(old.iter_vars)
        variables[axis] = _longer(variables[axis], size)
        parts = (old.reads, old.writes, old.name_hint, old.body, old.init)
        return SBlock(variables, *parts)

    return structural_map(nest, [(tirx.For, loop), (SBlock, block)])


def _longer(old: tirx.IterVar, size: int) -> tirx.IterVar:
    domain = ir.Range.from_min_extent(old.dom.min, tirx.const(size, str(old.dom.min.ty.dtype)))
    return tirx.IterVar(domain, old.var, old.iter_type, old.thread_tag)


def zero_behind(nest: Any, axis: int) -> Any:
    """The nest of an element-wise stage that writes zeros from the end of an axis on."""
    variable = collect(nest, SBlock)[0].iter_vars[axis]
    inside = variable.var < variable.dom.extent

    def store(old: Any) -> Any:
        return tirx.BufferStore(old.buffer, _where(inside, old.value), old.indices)

    return structural_map(nest, (tirx.BufferStore, store))


def _where(inside: Any, value: Any) -> Any:
    """A value, or zero. For a value that already has a condition, both conditions become one."""
    zero = tirx.const(0, str(value.ty.dtype))
    if isinstance(value, ir.Call) and is_condition(value) and is_zero(value.args[2]):
        condition, kept, _ = value.args
        return tirx.if_then_else(tirx.all(condition, inside), kept, zero)
    return tirx.if_then_else(inside, value, zero)
