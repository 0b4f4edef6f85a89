"""Reading and writing at places that other tensors hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tvm import relax, te, tirx

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import axis_of, dtype_of, shape_of
from ansor.frontend.importers.from_onnx.converters.context import Context, Converter
from ansor.frontend.importers.operators import indexing, ordering, scan
from ansor.frontend.rewrite import constant

op = relax.op
_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _axis(c: Context, x: Any) -> int:
    return axis_of(c.attr("axis", 0), len(shape_of(x)))


def gather(c: Context) -> Any:
    """Slices at places along an axis."""
    x = c.operand(0)
    return indexing.take(c.bb, x, c.operand(1), _axis(c, x))


def gather_elements(c: Context) -> Any:
    """Elements at places along an axis."""
    x = c.operand(0)
    return indexing.gather(c.bb, x, c.operand(1), _axis(c, x))


def gather_nd(c: Context) -> Any:
    """Slices at places in the first axes."""
    return indexing.gather_nd(c.bb, c.operand(0), c.operand(1), c.attr("batch_dims", 0))


def _reduction(c: Context) -> str:
    return _REDUCTIONS[c.attr("reduction", "none")]


def scatter_elements(c: Context) -> Any:
    """Elements put, or combined, at places along an axis."""
    x, places, updates = c.operands
    return indexing.scatter(c.bb, x, places, updates, _axis(c, x), _reduction(c))


def scatter_nd(c: Context) -> Any:
    """Slices put, or combined, at places in the first axes."""
    x, places, updates = c.operands
    return indexing.scatter_nd(c.bb, x, places, updates, _reduction(c))


def one_hot(c: Context) -> Any:
    """One value at the place along a new axis, and another one at other places and for places
    outside."""
    places, values = c.operand(0), c.operand(2)
    depth = int(c.known(1).reshape(-1)[0])
    shape = shape_of(places)
    axis = axis_of(c.attr("axis", -1), len(shape) + 1)
    result = [*shape[:axis], depth, *shape[axis:]]

    def define(index: Any, pair: Any) -> Any:
        def element(*at: Any) -> Any:
            place = index(*at[:axis], *at[axis + 1 :])
            here = tirx.Cast(place.dtype if hasattr(place, "dtype") else "int64", at[axis])
            hit = tirx.any(place == here, place + tirx.const(depth, dtype_of(wide)) == here)
            return tirx.if_then_else(hit, pair(1), pair(0))

        return te.compute(result, element, name="one_hot")

    wide = c.cast(places, "int64")
    return c.te(define, wide, values, name="one_hot")


def compress(c: Context) -> Any:
    """Slices for which a known condition holds."""
    x = c.operand(0)
    chosen = np.flatnonzero(c.known(1))
    if c.attr("axis") is None:
        flat = c.reshape(x, (int(np.prod(shape_of(x))),))
        return op.take(flat, constant(chosen.astype(np.int64)), 0)
    return op.take(x, constant(chosen.astype(np.int64)), _axis(c, x))


def topk(c: Context) -> Any:
    """The first elements in order along an axis, and where they were; of equal ones the first."""
    x = c.operand(0)
    axis = axis_of(c.attr("axis", -1), len(shape_of(x)))
    count = c.integers(1)[0] if c.has(1) else c.attr("k")
    return list(ordering.topk(c.bb, x, count, axis, bool(c.attr("largest", 1))))


def _running(function: Callable[..., Any]) -> Converter:
    def convert(c: Context) -> Any:
        x = c.operand(0)
        axis = axis_of(c.integers(1)[0], len(shape_of(x)))
        exclusive, reverse = bool(c.attr("exclusive", 0)), bool(c.attr("reverse", 0))
        return function(c.bb, x, axis, exclusive, reverse)

    return convert


def tensor_scatter(c: Context) -> Any:
    """A cache whose slices along an axis are replaced from a place on, of each sample another."""
    cache, update = c.operand(0), c.operand(1)
    shape = shape_of(cache)
    axis = axis_of(c.attr("axis", -2), len(shape))
    if axis == 0:
        raise OperatorError("its axis 0 is the batch")
    length, new = shape[axis], shape_of(update)[axis]
    circular = c.attr("mode", "linear") == "circular"
    zeros = constant(np.zeros(shape[0], np.int64))
    first = c.cast(c.operand(2), "int64") if c.has(2) else zeros

    def define(old: Any, fresh: Any, begin: Any) -> Any:
        def element(*at: Any) -> Any:
            distance = tirx.Cast("int64", at[axis]) - begin(at[0])
            place = tirx.floormod(distance, tirx.const(length, "int64")) if circular else distance
            inside = tirx.all(place >= tirx.const(0, "int64"), place < tirx.const(new, "int64"))
            read = fresh(*at[:axis], place, *at[axis + 1 :])
            return tirx.if_then_else(inside, read, old(*at))

        return te.compute(shape, element, name="tensor_scatter")

    return c.te(define, cache, update, first, name="tensor_scatter")


def array_feature(c: Context) -> Any:
    """Elements at places along the last axis."""
    x = c.operand(0)
    return indexing.take(c.bb, x, c.reshape(c.operand(1), (-1,)), len(shape_of(x)) - 1)


CONVERTERS: Mapping[str, Converter] = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "TensorScatter": tensor_scatter,
    "OneHot": one_hot,
    "Compress": compress,
    "TopK": topk,
    "CumSum": _running(scan.cumsum),
    "CumProd": _running(scan.cumprod),
}
