"""Replacement of a part of a tensor."""

from __future__ import annotations

from typing import Any

import torch
from tvm import relax, te, tirx

from ansor.frontend.importers.conversion import axis_of, dtype_of, shape_of
from ansor.frontend.importers.from_torch.converters.context import Context
from ansor.frontend.importers.from_torch.converters.registry import converts
from ansor.frontend.importers.from_torch.converters.shape import cut

op = relax.op


@converts("slice_scatter.default")
def slice_scatter(
    context: Context, x: Any, src: Any, dim: int, start: Any, end: Any, step: int
) -> Any:
    """`x` with a range along an axis replaced."""
    shape = shape_of(x)
    axis = axis_of(dim, len(shape))
    first, last, _ = slice(start, end).indices(shape[axis])
    return replaced(context, x, context.cast(src, dtype_of(x)), axis, range(first, last, step))


@converts("select_scatter.default")
def select_scatter(context: Context, x: Any, src: Any, dim: int, index: int) -> Any:
    """`x` with one place along an axis replaced."""
    shape = list(shape_of(x))
    axis = axis_of(dim, len(shape))
    first = index % shape[axis]
    shape[axis] = 1
    part = context.reshape(context.cast(src, dtype_of(x)), shape)
    return replaced(context, x, part, axis, range(first, first + 1))


def replaced(context: Context, x: Any, src: Any, axis: int, places: range) -> Any:
    """`x` with `src` at places along an axis."""
    if not places:
        return x
    extent, (first, last, step) = shape_of(x)[axis], (places.start, places.stop, places.step)
    src = context.broadcast(src, [*shape_of(x)[:axis], len(places), *shape_of(x)[axis + 1 :]])
    if step == 1:
        parts = [cut(context, x, axis, 0, first)] if first else []
        parts += [src]
        parts += [cut(context, x, axis, last, extent)] if last < extent else []
        return op.concat(parts, axis) if len(parts) > 1 else src
    return op.where(
        _mask(context, axis, places, len(shape_of(x)), extent),
        _stretched(context, src, axis, places, extent),
        x,
    )


def _mask(context: Context, axis: int, places: range, ndim: int, extent: int) -> Any:
    """Whether places along the axis are replaced: `[…, extent, …] bool`."""
    table = torch.zeros(extent, dtype=torch.bool)
    table[list(places)] = True
    shape = [extent if k == axis else 1 for k in range(ndim)]
    return relax.const(table.reshape(shape).numpy(), "bool")


def _stretched(context: Context, src: Any, axis: int, places: range, extent: int) -> Any:
    """`src` with each place where it belongs, anything between."""
    table = torch.zeros(extent, dtype=torch.int64)
    table[list(places)] = torch.arange(len(places))
    return context.emit(op.take(src, relax.const(table.numpy(), "int64"), axis, "clip"))


@converts("diagonal_scatter.default")
def diagonal_scatter(context: Context, x: Any, src: Any, offset: int, dim1: int, dim2: int) -> Any:
    """`x` with the elements replaced whose places along two axes differ by `offset`."""
    ndim = len(shape_of(x))
    rows, columns = axis_of(dim1, ndim), axis_of(dim2, ndim)
    count = shape_of(src)[-1]
    before = max(0, -offset)  # rows above the diagonal

    def define(data: Any, replacement: Any) -> Any:
        def place(*at: Any) -> Any:
            number = at[rows] - before
            outer = [i for axis, i in enumerate(at) if axis not in (rows, columns)]
            on_diagonal = tirx.all(at[columns] - at[rows] == offset, number >= 0, number < count)
            return tirx.if_then_else(on_diagonal, replacement(*outer, number), data(*at))

        return te.compute(context.shape, place, name="diagonal_scatter")

    return context.te(define, x, context.cast(src, dtype_of(x)), name="diagonal_scatter")
