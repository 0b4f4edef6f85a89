"""Views: the same elements in another shape or order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from tvm import relax, te

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import axis_of, dtype_of, shape_of
from ansor.frontend.importers.from_torch.converters.context import Context, number, reduced_axes
from ansor.frontend.importers.from_torch.converters.registry import converts

op = relax.op


@converts("view.default", "_unsafe_view.default", "reshape.default", "view_copy.default")
@converts("unsqueeze.default", "squeeze.default", "squeeze.dim", "squeeze.dims")
@converts("flatten.using_ints", "_reshape_alias.default")
def reshaped(context: Context, x: Any, size: Any = None, dim: Any = None) -> Any:
    """The elements in the result's shape."""
    return context.reshape(x, context.shape)


@converts("permute.default", "permute_copy.default")
def permute(context: Context, x: Any, dims: Sequence[int]) -> Any:
    """Axes in another order."""
    return op.permute_dims(x, [axis_of(dim, len(dims)) for dim in dims]) if dims else x


@converts("transpose.int")
def transpose(context: Context, x: Any, dim0: int, dim1: int) -> Any:
    """Two axes exchanged."""
    ndim = len(shape_of(x))
    axes = list(range(ndim))
    first, second = axis_of(dim0, ndim), axis_of(dim1, ndim)
    axes[first], axes[second] = axes[second], axes[first]
    return op.permute_dims(x, axes)


@converts("t.default")
def transposed(context: Context, x: Any) -> Any:
    """A matrix with its axes exchanged."""
    return op.permute_dims(x, [1, 0]) if len(shape_of(x)) == 2 else x


@converts("expand.default", "expand_copy.default")
def expand(context: Context, x: Any, size: Any, implicit: Any = False) -> Any:
    """Axes of extent one repeated."""
    return context.broadcast(x, context.shape)


@converts("slice.Tensor", "slice_copy.Tensor")
def sliced(context: Context, x: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    """Every `step`-th element of a range along one axis."""
    shape = shape_of(x)
    axis = axis_of(dim, len(shape))
    first, last, _ = slice(start, end).indices(shape[axis])
    return cut(context, x, axis, first, last, step)


def cut(context: Context, x: Any, axis: int, first: int, last: int, step: int = 1) -> Any:
    """Elements `first`, `first + step`, … below `last` along an axis."""
    if (first, last, step) == (0, shape_of(x)[axis], 1):
        return x
    return context.emit(op.strided_slice(x, [axis], [first], [last], [step]))


@converts("select.int", "select_copy.int")
def select(context: Context, x: Any, dim: int, index: int) -> Any:
    """One place along an axis, without the axis."""
    shape = shape_of(x)
    axis = axis_of(dim, len(shape))
    first = index % shape[axis]
    return context.reshape(cut(context, x, axis, first, first + 1), context.shape)


@converts("split_with_sizes.default", "split_with_sizes_copy.default")
def split_with_sizes(context: Context, x: Any, split_sizes: Any, dim: int) -> list[Any]:
    """Parts along an axis."""
    axis = axis_of(dim, len(shape_of(x)))
    return _parts(context, x, axis, [result.shape[axis] for result in context.results])


@converts("split.Tensor", "chunk.default", "split_copy.Tensor")
def split(
    context: Context, x: Any, split_size: Any = None, chunks: Any = None, dim: int = 0
) -> Any:
    """Parts along an axis."""
    return split_with_sizes(context, x, None, dim)


@converts("unbind.int", "unbind_copy.int")
def unbind(context: Context, x: Any, dim: int) -> list[Any]:
    """Each place along an axis, without the axis."""
    axis = axis_of(dim, len(shape_of(x)))
    parts = _parts(context, x, axis, [1] * shape_of(x)[axis])
    return [context.reshape(part, context.shape) for part in parts]


def _parts(context: Context, x: Any, axis: int, extents: Sequence[int]) -> list[Any]:
    first, parts = 0, []
    for extent in extents:
        parts.append(cut(context, x, axis, first, first + extent) if extent else _empty(x, axis))
        first += extent
    return parts


def _empty(x: Any, axis: int) -> Any:
    shape = list(shape_of(x))
    shape[axis] = 0
    return op.zeros(shape, dtype_of(x))


@converts("cat.default")
def cat(context: Context, tensors: Sequence[Any], dim: int) -> Any:
    """Tensors one after the other along an axis; those without elements add nothing."""
    axis = axis_of(dim, len(context.shape))
    parts = [context.cast(t, context.dtype) for t in tensors if 0 not in shape_of(t)]
    return op.concat(parts, axis) if len(parts) > 1 else parts[0]


@converts("stack.default")
def stack(context: Context, tensors: Sequence[Any], dim: int) -> Any:
    """Tensors one after the other along a new axis."""
    axis = axis_of(dim, len(context.shape))
    shape = list(context.shape)
    shape[axis] = 1
    parts = [context.reshape(context.cast(t, context.dtype), shape) for t in tensors]
    return op.concat(parts, axis) if len(parts) > 1 else parts[0]


@converts("repeat.default")
def repeat(context: Context, x: Any, repeats: Sequence[int]) -> Any:
    """The whole tensor again and again."""
    whole = context.reshape(x, _padded(shape_of(x), len(repeats)))
    return op.tile(whole, list(repeats)) if any(count != 1 for count in repeats) else whole


def _padded(shape: Sequence[int], ndim: int) -> list[int]:
    return [1] * (ndim - len(shape)) + list(shape)


@converts("flip.default")
def flip(context: Context, x: Any, dims: Sequence[int]) -> Any:
    """The reverse order along axes."""
    if not shape_of(x):
        return x
    shape, axes = shape_of(x), reduced_axes(dims, len(shape_of(x))) if dims else []

    def define(data: Any) -> Any:
        def place(*at: Any) -> Any:
            return data(*(shape[k] - 1 - i if k in axes else i for k, i in enumerate(at)))

        return te.compute(shape, place, name="flip")

    return context.te(define, x, name="flip")


@converts("roll.default")
def roll(context: Context, x: Any, shifts: Any, dims: Any) -> Any:
    """Elements moved along axes, the last ones to the front."""
    shape = shape_of(x)
    if not dims:
        flat = context.reshape(x, (-1,)) if len(shape) != 1 else x
        return context.reshape(_rolled(context, flat, shifts[0], 0), shape)
    for shift, dim in zip(shifts, dims, strict=True):
        x = _rolled(context, x, shift, axis_of(dim, len(shape)))
    return x


def _rolled(context: Context, x: Any, shift: int, axis: int) -> Any:
    extent = shape_of(x)[axis]
    first = -shift % extent
    if not first:
        return x
    parts = [cut(context, x, axis, first, extent), cut(context, x, axis, 0, first)]
    return context.emit(op.concat(parts, axis))


@converts("diagonal.default", "diagonal_copy.default")
def diagonal(context: Context, x: Any, offset: int, dim1: int, dim2: int) -> Any:
    """The elements whose places along two axes differ by `offset`."""
    ndim = len(shape_of(x))
    rows, columns = axis_of(dim1, ndim), axis_of(dim2, ndim)

    def define(data: Any) -> Any:
        def place(*at: Any) -> Any:
            others, k = list(at[:-1]), at[-1]
            where = {rows: k + max(0, -offset), columns: k + max(0, offset)}
            return data(*(where[a] if a in where else others.pop(0) for a in range(ndim)))

        return te.compute(context.shape, place, name="diagonal")

    return context.te(define, x, name="diagonal")


@converts("unfold.default", "unfold_copy.default")
def unfold(context: Context, x: Any, dimension: int, size: int, step: int) -> Any:
    """Windows along an axis, as a new last axis."""
    axis = axis_of(dimension, len(shape_of(x)))
    if not shape_of(x):
        return context.reshape(x, context.shape)

    def define(data: Any) -> Any:
        def place(*at: Any) -> Any:
            return data(*(i * step + at[-1] if k == axis else i for k, i in enumerate(at[:-1])))

        return te.compute(context.shape, place, name="unfold")

    return context.te(define, x, name="unfold")


@converts("as_strided.default", "as_strided_copy.default")
def as_strided(
    context: Context, x: Any, size: Any, stride: Sequence[int], storage_offset: Any
) -> Any:
    """Elements at places in memory; `x` must be all of its memory, in order."""
    source = context.node.args[0].meta["val"]
    whole = source.untyped_storage().nbytes() // source.element_size() == source.numel()
    if not (isinstance(source, torch.Tensor) and source.is_contiguous() and whole):
        raise OperatorError("strides into memory that is not in order are not supported")
    first = int(storage_offset or 0)
    last = first + sum((e - 1) * s for e, s in zip(context.shape, stride, strict=True))
    if min(stride, default=0) < 0 or last >= source.numel():
        raise OperatorError("strides that leave the tensor are not supported")

    def define(data: Any) -> Any:
        def place(*at: Any) -> Any:
            return data(first + sum(i * s for i, s in zip(at, stride, strict=True)))

        return te.compute(context.shape, place, name="as_strided")

    return context.te(define, context.reshape(x, (source.numel(),)), name="as_strided")


@converts("constant_pad_nd.default")
def constant_pad(context: Context, x: Any, pad: Sequence[int], value: Any) -> Any:
    """A margin of a constant; a negative one is cut off."""
    ndim = len(shape_of(x))
    widths = [(0, 0)] * (ndim - len(pad) // 2)
    widths += [(pad[k], pad[k + 1]) for k in range(len(pad) - 2, -1, -2)]
    for axis, (before, after) in enumerate(widths):
        x = cut(context, x, axis, max(0, -before), shape_of(x)[axis] - max(0, -after))
    margins = [max(0, width) for pair in widths for width in pair]
    if not any(margins):
        return x
    if dtype_of(x) == "bool":
        padded = op.nn.pad(context.cast(x, "uint8"), margins, pad_value=int(bool(value)))
        return context.cast(context.emit(padded), "bool")
    if float(value) != value:
        raise OperatorError(f"padding with {value} is not supported")
    return op.nn.pad(x, margins, pad_value=float(value))


@converts("tril.default")
def tril(context: Context, x: Any, diagonal: int) -> Any:
    """Zero above a diagonal."""
    return _triangle(context, x, lambda i, j: j <= i + diagonal)


@converts("triu.default")
def triu(context: Context, x: Any, diagonal: int) -> Any:
    """Zero below a diagonal."""
    return _triangle(context, x, lambda i, j: j >= i + diagonal)


def _triangle(context: Context, x: Any, holds: Any) -> Any:
    rows, columns = context.shape[-2:]
    i, j = torch.arange(rows)[:, None], torch.arange(columns)[None]
    mask = relax.const(holds(i, j).numpy(), "bool")
    return op.where(mask, x, number(0, context.dtype))
