"""Packed constants with columns in the order of tiles (`ansor.program.layout.PackedLayout`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from tvm import ir, tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm_ffi import structural_map

from ansor.lowering.statements import substitute_variables


def with_parameter(func: tirx.PrimFunc, old: Any, new: Any) -> tirx.PrimFunc:
    """A function, not yet scheduled, with another parameter, at least as long in each dimension."""

    def load(read: Any) -> Any:
        return tirx.BufferLoad(new, read.indices) if read.source.same_as(old) else read

    def region(read: Any) -> Any:
        return tirx.BufferRegion(new, read.region) if read.source.same_as(old) else read

    params = [new if param.same_as(old) else param for param in func.params]
    body = structural_map(func.body, [(ir.TensorLoad, load), (ir.TensorRegion, region)])
    return tirx.PrimFunc(params, body, func.ret_type, func.attrs)


@dataclass(frozen=True)
class Unmoved:
    """A variable of a block as if no tile was moved.

    Attributes:
        number: of the variable.
        value: of the variable without the move.
        end: of the last tile.
    """

    number: int
    value: Any
    end: int


def read_at_places(
    realize: SBlockRealize, unmoved: Unmoved, packed: Collection[Any]
) -> SBlockRealize:
    """A block with another variable, the place of a column, by which it reads packed constants."""
    block = realize.block
    column = block.iter_vars[unmoved.number]
    dtype = str(column.var.ty.dtype)
    place = tirx.Var(f"{column.var.name}_place", dtype)
    domain = ir.Range.from_min_extent(column.dom.min, tirx.const(unmoved.end, dtype))
    variable = tirx.IterVar(domain, place, column.iter_type, column.thread_tag)

    def at_place(index: Any) -> Any:
        return substitute_variables(index, {column.var: place})

    def load(read: Any) -> Any:
        if not _is_one_of(read.source, packed):
            return read
        return tirx.BufferLoad(read.source, [at_place(index) for index in read.indices])

    def region(read: Any) -> Any:
        if not _is_one_of(read.source, packed):
            return read
        parts = [ir.Range.from_min_extent(at_place(p.min), p.extent) for p in read.region]
        return tirx.BufferRegion(read.source, parts)

    changed = SBlock(
        [*block.iter_vars, variable],
        [region(read) for read in block.reads],
        block.writes,
        block.name_hint,
        structural_map(block.body, (ir.TensorLoad, load)),
        block.init,
        block.alloc_buffers,
        block.match_buffers,
        block.annotations,
    )
    return SBlockRealize([*realize.iter_values, unmoved.value], realize.predicate, changed)


def _is_one_of(buffer: Any, others: Collection[Any]) -> bool:
    return any(buffer.same_as(other) for other in others)
