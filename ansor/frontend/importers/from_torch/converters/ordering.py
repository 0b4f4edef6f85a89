"""Sorting, selecting by rank, running sums."""

from __future__ import annotations

from typing import Any

from tvm import relax, te

from ansor.frontend.importers.from_torch.converters.context import (
    Context,
    axis_of,
    dtype_of,
    number,
    shape_of,
)
from ansor.frontend.importers.from_torch.converters.elementwise import wide
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
    keys = context.cast(x, "uint8") if dtype_of(x) == "bool" else context.cast(x, wide(dtype_of(x)))
    places = context.emit(op.argsort(keys, axis, descending, "int64"))
    return along(context, x, places, axis), places


def along(context: Context, x: Any, places: Any, axis: int) -> Any:
    """The elements at places along an axis."""

    def define(data: Any, index: Any) -> Any:
        def element(*at: Any) -> Any:
            return data(*at[:axis], index(*at), *at[axis + 1 :])

        return te.compute(shape_of(places), element, name="along")

    return context.te(define, x, places, name="along")


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
