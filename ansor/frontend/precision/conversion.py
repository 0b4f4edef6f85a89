"""Conversions between dtypes in a compute definition: of values, and of whole buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import ir, tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import BufferRegion

from ansor.dag.from_tir.read import SPATIAL


def narrowed(value: Any, dtype: str) -> Any:
    """A value in a shorter dtype.

    A value that was converted from this dtype is not rounded again, on either side of a condition.
    """
    if str(value.ty.dtype) == dtype:
        return value
    if isinstance(value, tirx.Cast) and str(value.value.ty.dtype) == dtype:
        return value.value
    if _is_exact(value, dtype):
        return tirx.const(value.value, dtype)
    if isinstance(value, ir.Call) and str(getattr(value.op, "name", "")).endswith("if_then_else"):
        condition, *choices = value.args
        return tirx.if_then_else(condition, *(narrowed(choice, dtype) for choice in choices))
    return tirx.Cast(dtype, value)


def _is_exact(value: Any, dtype: str) -> bool:
    """Whether a value is a number that the dtype holds without rounding."""
    if not isinstance(value, tirx.FloatImm):
        return False
    with np.errstate(over="ignore"):
        return bool(float(np.dtype(dtype).type(value.value)) == value.value)


def converting_nest(source: Any, target: Any, name: str) -> Any:
    """Loops around a block that copies a buffer to one of another dtype.

    Args:
        source: the buffer that is read.
        target: of the same shape.
        name: of the block.
    """
    loops = [tirx.Var(f"i{i}", size.ty) for i, size in enumerate(source.shape)]
    axes = [tirx.Var(f"v_i{i}", size.ty) for i, size in enumerate(source.shape)]
    domains = [ir.Range(tirx.const(0, str(size.ty.dtype)), size) for size in source.shape]
    iterators = [tirx.IterVar(d, v, SPATIAL) for d, v in zip(domains, axes, strict=True)]
    points = [ir.Range.from_min_extent(v, tirx.const(1, str(v.ty.dtype))) for v in axes]
    value = narrowed(tirx.BufferLoad(source, axes), str(target.dtype))
    block = SBlock(
        iterators,
        [BufferRegion(source, points)],
        [BufferRegion(target, points)],
        name,
        tirx.BufferStore(target, value, axes),
    )
    nest: Any = SBlockRealize(loops, True, block)
    for variable, domain in reversed(list(zip(loops, domains, strict=True))):
        nest = tirx.For(variable, domain.min, domain.extent, tirx.ForKind.SERIAL, nest)
    return nest


def conversion(ty: Any, dtype: str) -> tirx.PrimFunc:
    """A function that converts a tensor of a type to another dtype."""
    shape = [tirx.const(int(size), "int64") for size in ty.shape]
    source, target = (
        tirx.decl_buffer(shape, each, name, layout=None)
        for each, name in ((str(ty.dtype), "source"), (dtype, "target"))
    )
    block = SBlock([], [], [], "root", converting_nest(source, target, "converted"))
    body = SBlockRealize([], True, block)
    return tirx.PrimFunc([source, target], body).with_attr("tirx.noalias", True)
