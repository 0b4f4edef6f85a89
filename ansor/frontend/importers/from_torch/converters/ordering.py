"""Sorting, selecting by rank, running sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax, te, tirx

from ansor.frontend.importers.from_torch.converters.context import (
    Context,
    axis_of,
    dtype_of,
    is_float,
    number,
    shape_of,
)
from ansor.frontend.importers.from_torch.converters.elementwise import wide
from ansor.frontend.importers.from_torch.converters.reduction import elements_along
from ansor.frontend.importers.from_torch.converters.registry import converts
from ansor.frontend.importers.from_torch.converters.shape import cut

op = relax.op


@converts("cumsum.default")
def cumsum(context: Context, x: Any, dim: int) -> Any:
    """Running sum along an axis."""
    return _running(context, op.cumsum, x, dim)


@converts("cumprod.default")
def cumprod(context: Context, x: Any, dim: int) -> Any:
    """Running product along an axis."""
    return _running(context, op.cumprod, x, dim)


def _running(context: Context, function: Any, x: Any, dim: int) -> Any:
    dtype = wide(context.dtype)
    given = context.cast(x, dtype)
    if not shape_of(x):
        return context.cast(given, context.dtype)
    found = context.emit(function(given, axis_of(dim, len(shape_of(x))), dtype))
    return context.cast(found, context.dtype)


@converts("sort.default", "sort.stable")
def sort(
    context: Context, x: Any, dim: int = -1, descending: bool = False, stable: Any = None
) -> list[Any]:
    """Elements in order along an axis, and where they were; equal ones keep their order."""
    if not shape_of(x):
        return [x, number(0, "int64")]
    return list(in_order(context, x, axis_of(dim, len(shape_of(x))), descending))


def in_order(context: Context, x: Any, axis: int, descending: bool) -> tuple[Any, Any]:
    """Sorted elements and their places."""
    keys = _keys(context, x)
    places = context.emit(op.argsort(keys, axis, descending, "int64"))
    return elements_along(context, x, places, axis), places


def _keys(context: Context, x: Any) -> Any:
    """Integers that are in order as PyTorch orders the elements: NaN comes after all numbers.

    The bits of a float are in order if it is positive, and in the reverse order if it is not.
    """
    dtype = dtype_of(x)
    if not is_float(dtype):
        return context.cast(x, "int32") if dtype in ("bool", "int8", "uint8", "int16") else x
    x = context.cast(x, wide(dtype))
    bits = "int64" if dtype_of(x) == "float64" else "int32"
    largest = int(np.iinfo(bits).max)

    def key(value: Any) -> Any:
        zero = tirx.const(0, value.ty.dtype)
        plain = tirx.reinterpret(bits, tirx.Select(value == zero, zero, value))
        ordered = tirx.Select(plain < 0, plain ^ tirx.const(largest, bits), plain)
        return tirx.Select(tirx.isnan(value), tirx.const(largest, bits), ordered)

    def define(data: Any) -> Any:
        return te.compute(shape_of(x), lambda *at: key(data(*at)), name="keys")

    return context.te(define, x, name="keys")


@converts("topk.default")
def topk(context: Context, x: Any, k: int, dim: int, largest: bool, sorted: bool) -> list[Any]:
    """The first `k` elements in order along an axis, and where they were."""
    if not shape_of(x):
        return [x, number(0, "int64")]
    axis = axis_of(dim, len(shape_of(x)))
    found = in_order(context, x, axis, largest)
    return [cut(context, part, axis, 0, k) for part in found]


@converts("kthvalue.default")
def kthvalue(context: Context, x: Any, k: int, dim: int, keepdim: bool) -> list[Any]:
    """The k-th smallest element along an axis, and where it is."""
    if not shape_of(x):
        return [x, number(0, "int64")]
    axis = axis_of(dim, len(shape_of(x)))
    found = in_order(context, x, axis, False)
    return [context.reshape(cut(context, p, axis, k - 1, k), context.shape) for p in found]
