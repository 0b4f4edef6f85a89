"""Sorting, selecting by rank, running sums and extremes."""

from __future__ import annotations

from typing import Any

from ansor.frontend.importers.conversion import axis_of, dtype_of, shape_of
from ansor.frontend.importers.from_torch.converters.context import Context, number
from ansor.frontend.importers.from_torch.converters.elementwise import wide
from ansor.frontend.importers.from_torch.converters.registry import converts
from ansor.frontend.importers.from_torch.converters.shape import cut
from ansor.frontend.importers.operators import ordering, scan
from ansor.frontend.importers.operators.search_sorted import searchsorted as search


@converts("cumsum.default")
def cumsum(context: Context, x: Any, dim: int) -> Any:
    """Running sum along an axis."""
    return _running(context, scan.cumsum, x, dim)


@converts("cumprod.default")
def cumprod(context: Context, x: Any, dim: int) -> Any:
    """Running product along an axis."""
    return _running(context, scan.cumprod, x, dim)


@converts("logcumsumexp.default")
def logcumsumexp(context: Context, x: Any, dim: int) -> Any:
    """Logarithm of the running sum of exponentials along an axis."""
    return _running(context, scan.logcumsumexp, x, dim)


def _running(context: Context, function: Any, x: Any, dim: int) -> Any:
    given = context.cast(x, wide(context.dtype))
    if not shape_of(x):
        return context.cast(given, context.dtype)
    found = function(context.bb, given, axis_of(dim, len(shape_of(x))))
    return context.cast(found, context.dtype)


@converts("cummax.default")
def cummax(context: Context, x: Any, dim: int) -> list[Any]:
    """Running maximum along an axis, and its places."""
    return _running_extreme(context, scan.cummax, x, dim)


@converts("cummin.default")
def cummin(context: Context, x: Any, dim: int) -> list[Any]:
    """Running minimum along an axis, and its places."""
    return _running_extreme(context, scan.cummin, x, dim)


def _running_extreme(context: Context, function: Any, x: Any, dim: int) -> list[Any]:
    if not shape_of(x):
        return [x, number(0, "int64")]
    dtype = dtype_of(x)
    plain = context.cast(x, "int8" if dtype == "bool" else wide(dtype))
    found, places = function(context.bb, plain, axis_of(dim, len(shape_of(x))))
    return [context.cast(found, dtype), places]


@converts("searchsorted.Tensor")
def searchsorted(
    context: Context,
    sorted_sequence: Any,
    x: Any,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
) -> Any:
    """Positions of elements in a sorted sequence."""
    dtype = context.common_dtype()
    bounds, data = context.cast(sorted_sequence, dtype), context.cast(x, dtype)
    return search(context.bb, bounds, data, right or side == "right", context.dtype)


@converts("bucketize.Tensor")
def bucketize(
    context: Context, x: Any, boundaries: Any, out_int32: bool = False, right: bool = False
) -> Any:
    """Numbers of the intervals between boundaries that contain the elements."""
    return searchsorted(context, boundaries, x, out_int32, right)


@converts("sort.default", "sort.stable")
def sort(
    context: Context, x: Any, dim: int = -1, descending: bool = False, stable: Any = None
) -> list[Any]:
    """Elements in order along an axis, and where they were; equal ones keep their order."""
    if not shape_of(x):
        return [x, number(0, "int64")]
    return list(ordering.sort(context.bb, x, axis_of(dim, len(shape_of(x))), descending))


@converts("topk.default")
def topk(context: Context, x: Any, k: int, dim: int, largest: bool, sorted: bool) -> list[Any]:
    """The first `k` elements in order along an axis, and where they were."""
    if not shape_of(x):
        return [x, number(0, "int64")]
    axis = axis_of(dim, len(shape_of(x)))
    return list(ordering.topk(context.bb, x, k, axis, largest, sorted))


@converts("kthvalue.default")
def kthvalue(context: Context, x: Any, k: int, dim: int, keepdim: bool) -> list[Any]:
    """The k-th smallest element along an axis, and where it is."""
    if not shape_of(x):
        return [x, number(0, "int64")]
    axis = axis_of(dim, len(shape_of(x)))
    found = ordering.sort(context.bb, x, axis)
    return [context.reshape(cut(context, p, axis, k - 1, k), context.shape) for p in found]
