"""Reading and writing at places that other tensors hold; negative ones count from the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import GenericConst

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import shape_of
from ansor.frontend.rewrite import constant

op = relax.op


def from_front(bb: relax.BlockBuilder, indices: Any, extents: Sequence[int]) -> Any:
    """Places counted from the front.

    Args:
        bb: where expressions are bound.
        indices: integers of any shape.
        extents: of the axis that they index, or one for each element along their last axis.

    Raises:
        OperatorError: a constant place is outside.
    """
    dtype = str(indices.ty.dtype)
    if dtype.startswith("uint"):
        return indices
    sizes = np.array(extents[0] if len(extents) == 1 else extents)
    if isinstance(indices, GenericConst):
        places = indices.value.numpy()
        if np.any(places >= sizes) or np.any(places < -sizes):
            raise OperatorError("one of its constant indices is out of bounds")
        return constant(np.where(places < 0, places + sizes, places), dtype)
    zero = constant(np.zeros((), dtype))
    moved = op.add(indices, constant(sizes, dtype))
    return bb.emit(op.where(op.less(indices, zero), moved, indices))


def take(bb: relax.BlockBuilder, data: Any, indices: Any, axis: int) -> Any:
    """Slices of `data` at places along an axis; the axes of `indices` stand in its place.

    One constant place is a slice. Places outside are clipped.
    """
    shape = shape_of(data)
    places = from_front(bb, indices, [shape[axis]])
    if isinstance(places, GenericConst) and not places.value.numpy().shape:
        first = int(places.value.numpy())
        part = bb.emit(op.strided_slice(data, [axis], [first], [first + 1]))
        return bb.emit(op.reshape(part, [*shape[:axis], *shape[axis + 1 :]]))
    mode = "fast" if isinstance(places, GenericConst) else "clip"
    return bb.emit(op.take(data, places, axis, mode))


def gather(bb: relax.BlockBuilder, data: Any, indices: Any, axis: int) -> Any:
    """Elements of `data`; an element of `indices` is the place along an axis."""
    shape = shape_of(data)
    return bb.emit(op.gather_elements(data, from_front(bb, indices, [shape[axis]]), axis))


def gather_nd(bb: relax.BlockBuilder, data: Any, indices: Any, batch_dims: int) -> Any:
    """Slices of `data` whose places in its first axes the last axis of `indices` holds."""
    shape, depth = shape_of(data), int(indices.ty.shape[-1])
    extents = shape[batch_dims : batch_dims + depth]
    return bb.emit(op.gather_nd(data, from_front(bb, indices, extents), batch_dims))


def scatter(
    bb: relax.BlockBuilder, data: Any, indices: Any, updates: Any, axis: int, reduction: str
) -> Any:
    """`data`, with `updates` put, or combined, at the places of `indices` along an axis.

    Args:
        reduction: "update", "add", "mul", "max" or "min".
    """
    shape = shape_of(data)
    places = from_front(bb, indices, [shape[axis]])
    return bb.emit(op.scatter_elements(data, places, updates, axis, reduction))


def scatter_nd(
    bb: relax.BlockBuilder, data: Any, indices: Any, updates: Any, reduction: str
) -> Any:
    """`data`, with slices put, or combined, at places that the last axis of `indices` holds."""
    shape, depth = shape_of(data), int(indices.ty.shape[-1])
    places = from_front(bb, indices, shape[:depth])
    return bb.emit(op.scatter_nd(data, places, updates, reduction))
