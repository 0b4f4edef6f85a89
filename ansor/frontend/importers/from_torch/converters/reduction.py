"""Sums, means, extremes and the like along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax, te, tirx

from ansor.frontend.importers.conversion import axis_of, dtype_of, shape_of
from ansor.frontend.importers.from_torch.converters.context import Context, number, reduced_axes
from ansor.frontend.importers.from_torch.converters.elementwise import wide
from ansor.frontend.importers.from_torch.converters.registry import converts
from ansor.frontend.importers.operators.ordering import along

op = relax.op


def reduced(
    context: Context, function: Callable[..., Any], x: Any, dim: Any, keepdim: bool = False
) -> Any:
    """A Relax reduction; one over no axis, or of one element, is the tensor itself."""
    shape = shape_of(x)
    if not shape:
        return x
    return context.emit(function(x, reduced_axes(dim, len(shape)), keepdims=keepdim))


@converts("sum.default", "sum.dim_IntList")
def sum_of(context: Context, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Sum in the result's dtype."""
    given = context.cast(x, wide(context.dtype))
    return context.cast(reduced(context, op.sum, given, dim, keepdim), context.dtype)


@converts("mean.default", "mean.dim")
def mean(context: Context, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Mean in the result's dtype."""
    given = context.cast(x, wide(context.dtype))
    return context.cast(reduced(context, op.mean, given, dim, keepdim), context.dtype)


@converts("prod.default", "prod.dim_int")
def prod(context: Context, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Product in the result's dtype."""
    given = context.cast(x, wide(context.dtype))
    return context.cast(reduced(context, op.prod, given, dim, keepdim), context.dtype)


@converts("amax.default", "max.default")
def amax(context: Context, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Largest element."""
    return _extreme(context, op.max, x, dim, keepdim)


@converts("amin.default", "min.default")
def amin(context: Context, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Smallest element."""
    return _extreme(context, op.min, x, dim, keepdim)


def _extreme(context: Context, function: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    as_number = context.cast(x, "uint8") if context.dtype == "bool" else x
    return context.cast(reduced(context, function, as_number, dim, keepdim), context.dtype)


@converts("any.default", "any.dim", "any.dims")
def any_of(context: Context, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether an element is not zero."""
    flags = context.cast(context.cast(x, "bool"), "uint8")
    return context.cast(reduced(context, op.max, flags, dim, keepdim), context.dtype)


@converts("all.default", "all.dim", "all.dims")
def all_of(context: Context, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether no element is zero."""
    flags = context.cast(context.cast(x, "bool"), "uint8")
    return context.cast(reduced(context, op.min, flags, dim, keepdim), context.dtype)


@converts("argmax.default")
def argmax(context: Context, x: Any, dim: Any, keepdim: bool) -> Any:
    """Place of the largest element, the first of several; of the first NaN if there is one."""
    return place_of(context, x, dim, keepdim, largest=True)


@converts("argmin.default")
def argmin(context: Context, x: Any, dim: Any, keepdim: bool) -> Any:
    """Place of the smallest element, the first of several; of the first NaN if there is one."""
    return place_of(context, x, dim, keepdim, largest=False)


def place_of(context: Context, x: Any, dim: Any, keepdim: bool, largest: bool) -> Any:
    """`int64` places along an axis, in the whole tensor for None, found by one reduction."""
    shape = shape_of(x)
    flat = context.reshape(x, (int(np.prod(shape)),)) if dim is None or not shape else x
    axis = 0 if dim is None else axis_of(dim, len(shape))
    flat = context.cast(flat, "uint8") if dtype_of(flat) == "bool" else flat
    found = context.te(lambda data: _place(data, axis, largest), flat, name="place")
    result = list(shape_of(flat))
    del result[axis]
    kept = [1] * len(shape) if dim is None else [*result[:axis], 1, *result[axis:]]
    return context.reshape(found, (kept if shape else []) if keepdim else (result if shape else []))


def _place(data: Any, axis: int, largest: bool) -> Any:
    extent = data.shape[axis]
    low = te.min_value(data.dtype) if largest else te.max_value(data.dtype)
    reducer = te.comm_reducer(
        lambda a, b: _better(a, b, largest),
        lambda t0, t1: (tirx.const(2**62, t0), low),
        name="place",
    )
    k = te.reduce_axis((0, extent), name="k")
    shape = [e for a, e in enumerate(data.shape) if a != axis]

    def element(*at: Any) -> Any:
        where = [*at[:axis], k, *at[axis:]]
        return reducer((tirx.Cast("int64", k.var), data(*where)), axis=k)

    places, _ = te.compute(shape, element, name="place")
    return te.compute(shape, lambda *at: places(*at), name="place_only")


def _better(a: Any, b: Any, largest: bool) -> tuple[Any, Any]:
    """The better one of two (place, value): NaN before all, then the value, then the first."""
    first = a[0] < b[0]
    better = a[1] > b[1] if largest else a[1] < b[1]
    chosen = tirx.Select(a[1] == b[1], first, better)
    if "float" in str(a[1].ty.dtype):
        # Comparisons with infinity: a vector of `isnan` joined by logical operators is wrong.
        infinity = tirx.const(float("inf"), a[1].ty.dtype)
        true, false = tirx.const(True), tirx.const(False)
        a_is_nan = tirx.Select(b[1] <= infinity, true, first)
        chosen = tirx.Select(
            a[1] <= infinity, tirx.Select(b[1] <= infinity, chosen, false), a_is_nan
        )
    return tuple(tirx.Select(chosen, one, other) for one, other in zip(a, b, strict=True))


@converts("max.dim")
def max_dim(context: Context, x: Any, dim: int, keepdim: bool) -> list[Any]:
    """Largest elements along an axis and their places."""
    return _with_place(context, x, dim, keepdim, largest=True)


@converts("min.dim")
def min_dim(context: Context, x: Any, dim: int, keepdim: bool) -> list[Any]:
    """Smallest elements along an axis and their places."""
    return _with_place(context, x, dim, keepdim, largest=False)


def _with_place(context: Context, x: Any, dim: int, keepdim: bool, largest: bool) -> list[Any]:
    """The extreme elements along an axis, NaN among them, and their places."""
    place = place_of(context, x, dim, keepdim=True, largest=largest)
    if not shape_of(x):
        return [x, place]
    axis = axis_of(dim, len(shape_of(x)))
    values = along(context.bb, x, place, axis)
    return [context.reshape(part, context.shape) for part in (values, place)]


@converts("var.correction")
def var(context: Context, x: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """Variance; `correction` is taken off the number of elements."""
    return context.cast(_variance(context, x, dim, correction, keepdim)[0], context.dtype)


@converts("var_mean.correction")
def var_mean(context: Context, x: Any, dim: Any, correction: Any, keepdim: bool) -> list[Any]:
    """Variance and mean."""
    found = _variance(context, x, dim, correction, keepdim)
    return [context.cast(part, context.dtype) for part in found]


@converts("std.correction")
def std(context: Context, x: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """Square root of the variance."""
    variance, _ = _variance(context, x, dim, correction, keepdim)
    return context.cast(context.emit(op.sqrt(variance)), context.dtype)


def _variance(
    context: Context, x: Any, dim: Any, correction: Any, keepdim: bool
) -> tuple[Any, Any]:
    """Variance and mean in the dtype that sums are computed in."""
    dtype = wide(context.dtype)
    given, shape = context.cast(x, dtype), shape_of(x)
    count = int(np.prod([shape[axis] for axis in reduced_axes(dim, len(shape))]))
    centre = reduced(context, op.mean, given, dim, keepdim=True)
    off = context.emit(op.subtract(given, centre))
    squares = reduced(context, op.sum, context.emit(op.multiply(off, off)), dim, keepdim)
    free = max(0.0, count - (1.0 if correction is None else float(correction)))
    variance = context.emit(op.divide(squares, number(free, dtype)))
    return variance, context.reshape(centre, shape_of(variance))
