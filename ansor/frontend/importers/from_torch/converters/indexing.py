"""Reading and writing at places that other tensors hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from tvm import relax, te

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import axis_of, dtype_of, is_float, shape_of
from ansor.frontend.importers.from_torch.converters.context import Context, number
from ansor.frontend.importers.from_torch.converters.registry import converts
from ansor.frontend.rewrite import constant

op = relax.op
REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def from_zero(context: Context, index: Any, extent: int) -> Any:
    """`int64` places; negative ones are counted from the end."""
    place = context.cast(index, "int64")
    behind = context.emit(op.less(place, number(0, "int64")))
    moved = context.emit(op.add(place, number(extent, "int64")))
    return context.emit(op.where(behind, moved, place))


@converts("embedding.default")
def embedding(
    context: Context,
    weight: Any,
    indices: Any,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Rows of a table; the further arguments matter to gradients alone."""
    return op.take(weight, indices, axis=0, mode="clip")


@converts("index_select.default")
def index_select(context: Context, x: Any, dim: int, index: Any) -> Any:
    """Places along one axis."""
    shape = shape_of(x)
    data = x if shape else context.reshape(x, (1,))
    places = index if shape_of(index) else context.reshape(index, (1,))
    taken = context.emit(op.take(data, places, axis_of(dim, len(shape)), "clip"))
    return context.reshape(taken, context.shape)


@converts("index.Tensor", "_unsafe_index.Tensor")
def index(context: Context, x: Any, indices: Sequence[Any]) -> Any:
    """Elements at places; an axis without places is whole."""
    shape = shape_of(x)
    given = [axis for axis, places in enumerate(indices) if places is not None]
    _refuse_masks([indices[axis] for axis in given])
    if len(given) == 1:
        axis = given[0]
        return op.take(x, from_zero(context, indices[axis], shape[axis]), axis=axis, mode="clip")
    flat = _flat_places(context, shape, indices)
    return op.take(context.reshape(x, (math.prod(shape),)), flat, axis=0, mode="clip")


def _refuse_masks(indices: Sequence[Any]) -> None:
    if any(dtype_of(places) in ("bool", "uint8") for places in indices):
        raise OperatorError("the shape of what a mask selects depends on the data")


def _flat_places(context: Context, shape: Sequence[int], indices: Sequence[Any]) -> Any:
    """`int64` places in the flattened tensor, in the shape of the indexed elements."""
    whole = [*indices, *[None] * (len(shape) - len(indices))]
    given = [axis for axis, places in enumerate(whole) if places is not None]
    common = np.broadcast_shapes(*(shape_of(whole[axis]) for axis in given))
    rest = [axis for axis in range(len(shape)) if axis not in given]
    adjacent = given == list(range(given[0], given[-1] + 1))
    front = [axis for axis in rest if adjacent and axis < given[0]]
    back = [axis for axis in rest if axis not in front]
    layout = [*(shape[axis] for axis in front), *common, *(shape[axis] for axis in back)]
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]

    total = _whole_axes(shape, strides, front, back, len(common))
    for axis in given:
        places = from_zero(context, whole[axis], shape[axis])
        aligned = context.reshape(places, (*shape_of(places), *[1] * len(back)))
        step = context.emit(op.multiply(aligned, number(strides[axis], "int64")))
        total = context.emit(op.add(step, total))
    return context.broadcast(total, layout)


def _whole_axes(
    shape: Sequence[int], strides: Sequence[int], front: list[int], back: list[int], middle: int
) -> Any:
    """The part of axes without places in flat indices, as a constant that broadcasts."""
    ndim = len(front) + middle + len(back)
    total = np.zeros([1] * ndim, np.int64)
    for position, axis in [*enumerate(front), *enumerate(back, len(front) + middle)]:
        line = [-1 if k == position else 1 for k in range(ndim)]
        total = total + (np.arange(shape[axis]) * strides[axis]).reshape(line)
    return constant(total, "int64")


@converts("index_put.default", "_unsafe_index_put.default")
def index_put(
    context: Context, x: Any, indices: Sequence[Any], values: Any, accumulate: bool
) -> Any:
    """`x` with elements at places replaced, or added to."""
    shape = shape_of(x)
    given = [places for places in indices if places is not None]
    if all(dtype_of(places) == "bool" for places in given):
        return _put_under_mask(context, x, indices, values, accumulate)
    _refuse_masks(given)
    places = _flat_places(context, shape, indices)
    if math.prod(shape_of(places)) == 0:
        return x
    values = context.broadcast(context.cast(values, context.dtype), shape_of(places))
    count, size = math.prod(shape_of(places)), math.prod(shape)
    flat = context.emit(
        op.scatter_elements(
            context.reshape(x, (size,)),
            context.reshape(places, (count,)),
            context.reshape(values, (count,)),
            0,
            "add" if accumulate else "update",
        )
    )
    return context.reshape(flat, shape)


def _put_under_mask(
    context: Context, x: Any, indices: Sequence[Any], values: Any, accumulate: bool
) -> Any:
    """One number at all places at which a mask of leading axes holds."""
    if len(indices) != 1 or math.prod(shape_of(values)) != 1:
        raise OperatorError("what is put at the places of a mask must be one number")
    mask = indices[0]
    ndim = len(shape_of(x)) - len(shape_of(mask))
    aligned = context.reshape(mask, (*shape_of(mask), *[1] * ndim))
    value = context.reshape(context.cast(values, context.dtype), ())
    value = context.emit(op.add(x, value)) if accumulate else value
    return op.where(aligned, value, x)


@converts("gather.default")
def gather(context: Context, x: Any, dim: int, index: Any, sparse_grad: bool = False) -> Any:
    """Along an axis the element at each place; all other places are the result's own."""
    shape = shape_of(x)
    if not shape:
        return context.broadcast(x, context.shape)
    axis = axis_of(dim, len(shape))

    def define(data: Any, places: Any) -> Any:
        def element(*at: Any) -> Any:
            return data(*at[:axis], places(*at), *at[axis + 1 :])

        return te.compute(context.shape, element, name="gather")

    places = from_zero(context, index, shape[axis])
    return context.te(define, x, places, name="gather")


@converts("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce")
def scatter(
    context: Context,
    x: Any,
    dim: int,
    index: Any,
    src: Any = None,
    value: Any = None,
    reduce: Any = None,
) -> Any:
    """`x` with elements at places along an axis replaced, added to or multiplied."""
    given = src if src is not None else value
    names = {None: "update", "add": "add", "multiply": "mul"}
    return _scattered(context, x, dim, index, given, names[reduce])


@converts("scatter_add.default")
def scatter_add(context: Context, x: Any, dim: int, index: Any, src: Any) -> Any:
    """`x` with elements added at places along an axis."""
    return _scattered(context, x, dim, index, src, "add")


def _scattered(context: Context, x: Any, dim: int, index: Any, src: Any, reduction: str) -> Any:
    shape, places = shape_of(x), shape_of(index)
    if math.prod(places) == 0:
        return x
    values = _source(context, src, places)
    if not shape:
        x, index = context.reshape(x, (1,)), context.reshape(index, (1,))
        values = context.reshape(values, (1,))
    axis = axis_of(dim, len(shape))
    smaller = [e for k, e in enumerate(shape_of(index)) if k != axis] != [
        e for k, e in enumerate(shape_of(x)) if k != axis
    ]
    if smaller:
        return _scattered_flat(context, x, axis, index, values, reduction)
    done = op.scatter_elements(x, context.cast(index, "int64"), values, axis, reduction)
    return context.reshape(context.emit(done), shape)


def _source(context: Context, src: Any, places: Sequence[int]) -> Any:
    """The elements of the source that have places."""
    values = context.cast(src, context.dtype)
    if not isinstance(src, relax.Expr):
        return context.broadcast(values, places)
    cut = [axis for axis, (e, p) in enumerate(zip(shape_of(values), places, strict=True)) if e != p]
    if not cut:
        return values
    ends = [places[axis] for axis in cut]
    return context.emit(op.strided_slice(values, cut, [0] * len(cut), ends))


def _scattered_flat(
    context: Context, x: Any, axis: int, index: Any, values: Any, reduction: str
) -> Any:
    """Places in the flattened tensor, if they are given for a part of the other axes only."""
    shape, places = shape_of(x), shape_of(index)
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    others = torch.zeros(places, dtype=torch.int64).numpy()
    for k, extent in enumerate(places):
        if k != axis:
            line = [-1 if j == k else 1 for j in range(len(places))]
            others = others + (np.arange(extent) * strides[k]).reshape(line)
    step = context.emit(op.multiply(context.cast(index, "int64"), number(strides[axis], "int64")))
    flat = context.emit(op.add(step, constant(others, "int64")))
    count, size = math.prod(places), math.prod(shape)
    done = op.scatter_elements(
        context.reshape(x, (size,)),
        context.reshape(flat, (count,)),
        context.reshape(values, (count,)),
        0,
        reduction,
    )
    return context.reshape(context.emit(done), shape)


@converts("scatter_reduce.two")
def scatter_reduce(
    context: Context, x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool
) -> Any:
    """`x` with elements combined at places along an axis."""
    if math.prod(shape_of(index)) == 0:
        return x
    if reduce == "mean":
        return _scatter_mean(context, x, dim, index, src, include_self)
    if reduce not in REDUCTIONS:
        raise OperatorError(f"its argument reduce={reduce!r} is not supported")
    if not include_self:
        neutral = _neutral(reduce, context.dtype)
        x = context.emit(_scattered(context, x, dim, index, neutral, "update"))
    return _scattered(context, x, dim, index, src, REDUCTIONS[reduce])


def _scatter_mean(
    context: Context, x: Any, dim: int, index: Any, src: Any, include_self: bool
) -> Any:
    if not is_float(context.dtype):
        raise OperatorError("means of integers are not supported")
    if not include_self:
        x = context.emit(_scattered(context, x, dim, index, 0, "update"))
    total = context.emit(_scattered(context, x, dim, index, src, "add"))
    ones = context.broadcast(number(1, context.dtype), context.shape)
    if not include_self:
        ones = context.emit(_scattered(context, ones, dim, index, 0, "update"))
    count = context.emit(_scattered(context, ones, dim, index, 1, "add"))
    return op.divide(total, op.maximum(count, number(1, context.dtype)))


def _neutral(reduce: str, dtype: str) -> Any:
    """The neutral element of a reduction."""
    if reduce in ("sum", "prod"):
        return 0 if reduce == "sum" else 1
    if is_float(dtype):
        return float("-inf") if reduce == "amax" else float("inf")
    info = np.iinfo(dtype)
    return int(info.min if reduce == "amax" else info.max)


@converts("masked_scatter.default")
def masked_scatter(context: Context, x: Any, mask: Any, source: Any) -> Any:
    """`x` with the next element of `source` wherever the mask holds."""
    flags = context.broadcast(mask, context.shape)
    size, shape = math.prod(context.shape), context.shape
    counted = context.reshape(context.cast(flags, "int64"), (size,))
    order = context.emit(op.cumsum(counted, 0, "int64"))
    place = context.emit(op.maximum(op.subtract(order, number(1, "int64")), number(0, "int64")))
    count = math.prod(shape_of(source))
    place = context.emit(op.minimum(place, number(count - 1, "int64")))
    taken = context.emit(op.take(context.reshape(source, (count,)), place, axis=0, mode="clip"))
    return op.where(flags, context.reshape(taken, shape), x)
