"""Rewrites sums of products for instructions that add up groups, from the definition to vectors.

First, a call for each element of the result replaces the products of a group. After scheduling, a
vectorised loop of such calls becomes calls for whole registers. The called functions are in
`ansor.lowering.dot_functions`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import tvm
from tvm import ir, tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm.target import Target, codegen
from tvm_ffi import structural_map

from ansor.dag.from_tir.read import is_literal
from ansor.lowering.dot_functions import (
    DotFunction,
    function_of,
    llvm_text,
    scalar_function,
    widths,
)
from ansor.lowering.statements import collect, sequence, substitute_variables, with_llvm

DOT_PRODUCTS = "ansor.dot_products"  # attribute of a function that calls for such instructions
_SUM_BYTES = 4  # of a lane


@dataclass(frozen=True)
class Grouping:
    """The new form of a block.

    Attributes:
        block: its name.
        axis: number of the variable whose neighbours form groups.
        elements: of a group.
        instruction: that adds up their products.
        lanes: position of the buffer that the lanes run along, among the block's operands.
    """

    block: str
    axis: int
    elements: int
    instruction: str
    lanes: int


def group_products(func: tirx.PrimFunc, grouping: Grouping) -> tirx.PrimFunc:
    """A function, not yet scheduled, with one call for each group of one block's products."""
    realizes = collect(func.body, SBlockRealize)
    realize = next(r for r in realizes if str(r.block.name_hint) == grouping.block)
    variable = realize.iter_values[grouping.axis]

    def shortened(loop: tirx.For) -> Any:
        if not loop.loop_var.same_as(variable):
            return loop
        return tirx.For(
            loop.loop_var, loop.min, _divided(loop.extent, grouping), loop.kind, loop.body
        )

    def called(block: SBlock) -> Any:
        return _with_call(block, grouping) if str(block.name_hint) == grouping.block else block

    return func.with_body(structural_map(func.body, [(tirx.For, shortened), (SBlock, called)]))


def _divided(extent: Any, grouping: Grouping) -> Any:
    return tirx.const(int(extent) // grouping.elements, str(extent.ty.dtype))


def _with_call(block: SBlock, grouping: Grouping) -> SBlock:
    """The block with a shorter axis, and a call that adds up a group."""
    store, old = block.body, block.iter_vars[grouping.axis]
    axis = tirx.Var(str(old.var.name), str(old.var.ty.dtype))
    domain = ir.Range.from_min_extent(old.dom.min, _divided(old.dom.extent, grouping))
    variables = list(block.iter_vars)
    variables[grouping.axis] = tirx.IterVar(domain, axis, old.iter_type, old.thread_tag)
    first = {old.var: axis * grouping.elements}
    loads = [_first_of_group(load, first) for load in _operands(store)]
    along, shared = loads[grouping.lanes], loads[1 - grouping.lanes]
    function = scalar_function(
        grouping.instruction, str(shared.source.dtype), str(along.source.dtype)
    )
    own = tirx.BufferLoad(store.buffer, store.indices)
    addresses = [tirx.address_of(load) for load in (shared, along)]
    value = tirx.call_extern(function.dtype, function.name, own, *addresses)
    reads = [
        _group_region(load, old.var, before, grouping)
        for load, before in zip(loads, _operands(store), strict=True)
    ]
    parts = (
        reads,
        block.writes,
        block.name_hint,
        tirx.BufferStore(store.buffer, value, store.indices),
    )
    return SBlock(
        variables, *parts, block.init, block.alloc_buffers, block.match_buffers, block.annotations
    )


def read_whole_groups(func: tirx.PrimFunc, block: str, copy: Any, elements: int) -> tirx.PrimFunc:
    """A function whose block reads all elements of the groups of a copy, its last dimension.

    The calls of the block name only the first element, and TVM reads regions off these.
    """

    def widened(found: SBlock) -> Any:
        if str(found.name_hint) != block:
            return found
        reads = [_last_whole(r, elements) if r.source.same_as(copy) else r for r in found.reads]
        parts = (found.iter_vars, reads, found.writes, found.name_hint, found.body, found.init)
        return SBlock(*parts, found.alloc_buffers, found.match_buffers, found.annotations)

    return func.with_body(structural_map(func.body, (SBlock, widened)))


def _last_whole(region: Any, elements: int) -> Any:
    *ranges, last = region.region
    whole = ir.Range.from_min_extent(last.min, elements)
    return tirx.BufferRegion(region.source, [*ranges, whole])


def _operands(store: Any) -> list[Any]:
    """The loads of the two operands, in the order of the statement."""
    loads = collect(store.value, ir.TensorLoad)
    return [load for load in loads if not load.source.same_as(store.buffer)]


def _first_of_group(load: Any, first: dict[Any, Any]) -> Any:
    return tirx.BufferLoad(load.source, [substitute_variables(i, first) for i in load.indices])


def _group_region(load: Any, axis: Any, before: Any, grouping: Grouping) -> Any:
    """The elements of a group: `elements` of them along the dimension that the axis moves."""
    ranges = []
    for index, old in zip(load.indices, before.indices, strict=True):
        moved = any(v.same_as(axis) for v in collect(old, tirx.Var))
        ranges.append(ir.Range.from_min_extent(index, grouping.elements if moved else 1))
    return tirx.BufferRegion(load.source, ranges)


def issue_dot_products(mod: tvm.IRModule, target: Target, register_bytes: int) -> tvm.IRModule:
    """The module with calls for whole registers, and with the definitions of the functions.

    Args:
        target: determines the available instructions.
        register_bytes: of a vector register.
    """

    def issued(func: Any) -> Any:
        if not isinstance(func, tirx.PrimFunc) or DOT_PRODUCTS not in (func.attrs or {}):
            return func
        return _issued(func, target, register_bytes // _SUM_BYTES)

    functions = {variable: issued(func) for variable, func in mod.functions.items()}
    return tvm.IRModule(functions, attrs=mod.attrs)


def _issued(func: tirx.PrimFunc, target: Target, register_lanes: int) -> tirx.PrimFunc:
    def in_registers(loop: tirx.For) -> Any:
        if loop.kind != tirx.ForKind.VECTORIZED or not isinstance(loop.body, SBlockRealize):
            return loop
        function = _function_in(loop.body)
        return loop if function is None else _in_registers(loop, function, register_lanes)

    body = structural_map(func.body, (tirx.For, in_registers))
    called = (_called(call) for call in collect(body, ir.Call))
    functions = dict.fromkeys(function for function in called if function is not None)

    def has(feature: str) -> bool:
        return bool(codegen.llvm_cpu_has_features(feature, target))

    return func.with_body(with_llvm(body, llvm_text(functions, has)))


def _function_in(realize: SBlockRealize) -> DotFunction | None:
    store = realize.block.body
    is_call = isinstance(store, tirx.BufferStore) and isinstance(store.value, ir.Call)
    return _called(store.value) if is_call else None


def _called(call: Any) -> DotFunction | None:
    if not str(getattr(call.op, "name", "")).endswith("call_extern"):
        return None
    return function_of(str(call.args[0].value))


def _in_registers(loop: tirx.For, function: DotFunction, register_lanes: int) -> Any:
    """The iterations of a vectorised loop as one block for each register.

    A loop that a condition guards stays a serial loop.
    """
    if not is_literal(loop.body.predicate, 1):
        return tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, loop.body)
    first, parts = 0, []
    for lanes in widths(int(loop.extent), register_lanes):
        parts.append(_register(loop, replace(function, lanes=lanes), first))
        first += lanes
    return sequence(*parts)


def _register(loop: tirx.For, function: DotFunction, first: int) -> SBlockRealize:
    realize: SBlockRealize = loop.body
    block, store = realize.block, realize.block.body
    start = {loop.loop_var: tirx.const(first, str(loop.loop_var.ty.dtype))}
    values = [substitute_variables(value, start) for value in realize.iter_values]
    at = [*store.indices[:-1], _lanes_from(store.indices[-1], function.lanes)]
    _, _, shared, along = store.value.args
    own = tirx.BufferLoad(store.buffer, at)
    call = tirx.call_extern(function.dtype, function.name, own, shared, along)
    body = tirx.BufferStore(store.buffer, call, at)
    lanes = store.indices[-1]
    reads = [_widened(region, lanes, function.lanes) for region in block.reads]
    writes = [_widened(region, lanes, function.lanes) for region in block.writes]
    wide = SBlock(block.iter_vars, reads, writes, block.name_hint, body)
    return SBlockRealize(values, realize.predicate, wide)


def _lanes_from(index: Any, lanes: int) -> Any:
    return index if lanes == 1 else tirx.Ramp(index, tirx.const(1, str(index.ty.dtype)), lanes)


def _widened(region: Any, axis: Any, lanes: int) -> Any:
    """A region of a block whose last spatial variable stands for several elements."""
    ranges = [
        ir.Range.from_min_extent(part.min, part.extent + lanes - 1) if _moves(part, axis) else part
        for part in region.region
    ]
    return tirx.BufferRegion(region.source, ranges)


def _moves(part: Any, axis: Any) -> bool:
    return any(v.same_as(axis) for v in collect(part.min, tirx.Var))
