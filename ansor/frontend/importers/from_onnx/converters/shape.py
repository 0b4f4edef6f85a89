"""Operators that move elements and compute nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tvm import relax, te, tirx

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import axes_of, axis_of, shape_of
from ansor.frontend.importers.from_onnx.converters.context import Context, Converter

op = relax.op


def reshape(c: Context) -> Any:
    """Another shape: 0 keeps an extent unless `allowzero`, -1 takes the remaining elements."""
    x = c.operand(0)
    given = c.listed(1, "shape") or []
    old = shape_of(x)
    if not c.attr("allowzero", 0):
        given = [old[a] if e == 0 else e for a, e in enumerate(given)]
    shape = _filled(given, math.prod(old))
    return c.broadcast(c.number(0, x), shape) if 0 in old else op.reshape(x, shape)


def _filled(shape: Sequence[int], size: int) -> list[int]:
    rest = math.prod(e for e in shape if e != -1)
    return [(size // rest if rest else 0) if e == -1 else e for e in shape]


def flatten(c: Context) -> Any:
    """Two axes: those before one, and the others."""
    x = c.operand(0)
    shape = shape_of(x)
    axis = c.attr("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return op.reshape(x, [math.prod(shape[:axis]), math.prod(shape[axis:])])


def squeeze(c: Context) -> Any:
    """The tensor without axes of extent 1."""
    x = c.operand(0)
    shape, given = shape_of(x), c.listed(1, "axes")
    if given is None:
        axes = [a for a, e in enumerate(shape) if e == 1]
    else:
        axes = axes_of(given, len(shape))
    return op.squeeze(x, axes) if axes else x


def unsqueeze(c: Context) -> Any:
    """The tensor with further axes of extent 1."""
    x = c.operand(0)
    given = c.listed(1, "axes") or []
    axes = set(axes_of(given, len(shape_of(x)) + len(given)))
    old = iter(shape_of(x))
    rank = len(shape_of(x)) + len(given)
    return op.reshape(x, [1 if a in axes else next(old) for a in range(rank)])


def transpose(c: Context) -> Any:
    """Axes in another order; reversed without one."""
    x = c.operand(0)
    rank = len(shape_of(x))
    order = c.attr("perm")
    return op.permute_dims(x, list(range(rank))[::-1] if order is None else list(order))


def concat(c: Context) -> Any:
    """Operands one after the other along an axis."""
    parts = c.operands
    axis = axis_of(c.attr("axis", 1), len(shape_of(parts[0])))
    filled = [part for part in parts if shape_of(part)[axis]] or parts[:1]
    return filled[0] if len(filled) == 1 else op.concat(filled, axis)


def split(c: Context) -> Any:
    """Parts along an axis: of given extents, or equal ones, the last of which may be shorter."""
    x = c.operand(0)
    axis = axis_of(c.attr("axis", 0), len(shape_of(x)))
    extent, sizes = shape_of(x)[axis], c.listed(1, "split")
    if sizes is None:
        count = len(c.node.output)
        size = -(-extent // count)
        sizes = [max(0, min(size, extent - k * size)) for k in range(count)]
    if sum(sizes) != extent:
        raise OperatorError(f"its parts {sizes} do not add up to {extent}")
    starts = np.cumsum([0, *sizes])
    return [_cut(c, x, axis, int(s), int(s) + e) for s, e in zip(starts, sizes, strict=False)]


def _cut(c: Context, x: Any, axis: int, first: int, end: int) -> Any:
    if (first, end) == (0, shape_of(x)[axis]):
        return x
    return c.emit(op.strided_slice(x, [axis], [first], [end]))


def slice_(c: Context) -> Any:
    """Every n-th element between bounds, backwards for a negative n; bounds are clamped."""
    x = c.operand(0)
    shape = shape_of(x)
    starts, ends = c.listed(1, "starts") or [], c.listed(2, "ends") or []
    axes = axes_of(c.listed(3, "axes") or range(len(starts)), len(shape))
    steps = c.integers(4) if c.has(4) else [1] * len(starts)
    for axis, first, end, step in zip(axes, starts, ends, steps, strict=True):
        x = _sliced(
            c, x, axis, *slice(*_python(first, end, step, shape[axis])).indices(shape[axis])
        )
    return x


def _python(first: int, end: int, step: int, extent: int) -> tuple[int, int | None, int]:
    """Bounds as Python's slices take them: below the first element is None for a negative step."""
    return first, (None if step < 0 and end < -extent else end), step


def _sliced(c: Context, x: Any, axis: int, first: int, end: int, step: int) -> Any:
    extent = len(range(first, end, step))
    shape = list(shape_of(x))
    if (first, extent, step) == (0, shape[axis], 1):
        return x
    if step > 0 and extent:
        return c.emit(op.strided_slice(x, [axis], [first], [end], [step]))
    shape[axis] = extent

    def define(data: Any) -> Any:
        def element(*at: Any) -> Any:
            return data(*at[:axis], first + at[axis] * step, *at[axis + 1 :])

        return te.compute(shape, element, name="slice")

    return c.te(define, x, name="slice")


def expand(c: Context) -> Any:
    """Broadcast to a shape, in both directions."""
    x = c.operand(0)
    return c.broadcast(x, np.broadcast_shapes(shape_of(x), tuple(c.integers(1))))


def tile(c: Context) -> Any:
    """Repeated along each axis."""
    x, repeats = c.operand(0), c.integers(1)
    shape = shape_of(x)
    pairs = list(zip(repeats, shape, strict=True))
    apart = c.reshape(x, [part for _, e in pairs for part in (1, e)])
    spread = c.broadcast(apart, [part for pair in pairs for part in pair])
    return c.reshape(spread, [r * e for r, e in pairs])


def pad(c: Context) -> Any:
    """Elements added at the ends of axes, or taken away where the number is negative."""
    x = c.operand(0)
    shape = shape_of(x)
    pads = c.listed(1, "pads") or []
    axes = axes_of(c.integers(3), len(shape)) if c.has(3) else list(range(len(shape)))
    before, after = [0] * len(shape), [0] * len(shape)
    for place, axis in enumerate(axes):
        before[axis], after[axis] = pads[place], pads[place + len(axes)]
    mode = c.attr("mode", "constant")
    if mode == "constant":
        return _filled_pad(c, x, before, after)
    tables = [_sources(mode, e, b, a) for e, b, a in zip(shape, before, after, strict=True)]
    for axis, table in enumerate(tables):
        if list(table) != list(range(shape[axis])):
            x = c.emit(op.take(x, relax.const(table.astype(np.int64), "int64"), axis))
    return x


def _filled_pad(c: Context, x: Any, before: list[int], after: list[int]) -> Any:
    """Negative padding first takes elements away."""
    shape = shape_of(x)
    for axis, (b, a) in enumerate(zip(before, after, strict=True)):
        x = _cut(c, x, axis, max(0, -b), shape[axis] - max(0, -a))
    old, start = shape_of(x), [max(0, b) for b in before]
    new = [e + b + max(0, a) for e, b, a in zip(old, start, after, strict=True)]
    if tuple(new) == old:
        return x
    value = c.reshape(c.operand(2), ()) if c.has(2) else c.number(c.attr("value", 0), x)

    def define(data: Any, filler: Any) -> Any:
        def element(*at: Any) -> Any:
            places = [p - b if b else p for p, b in zip(at, start, strict=True)]
            inside = [
                part
                for p, b, e, n in zip(at, start, old, new, strict=True)
                for part in ([p >= b] if b else []) + ([p < b + e] if b + e < n else [])
            ]
            return tirx.if_then_else(tirx.all(*inside), data(*places), filler())

        return te.compute(new, element, name="pad")

    return c.te(define, x, value, name="pad")


def _sources(mode: str, extent: int, before: int, after: int) -> Any:
    """`[before + extent + after] int`: where each element comes from."""
    places = np.arange(-before, extent + after)
    if mode == "edge":
        return np.clip(places, 0, extent - 1)
    if mode == "wrap":
        return places % extent
    if mode == "reflect":
        period = max(2 * (extent - 1), 1)
        turned = places % period
        return np.minimum(turned, period - turned) if extent > 1 else 0 * places
    raise OperatorError(f"its mode {mode} is not supported")


def depth_to_space(c: Context) -> Any:
    """Blocks of channels become blocks of an area."""
    x, size = c.operand(0), c.attr("blocksize")
    n, ch, h, w = shape_of(x)
    deep = ch // size**2
    if c.attr("mode", "DCR") == "DCR":
        parts, order = (n, size, size, deep, h, w), [0, 3, 4, 1, 5, 2]
    else:
        parts, order = (n, deep, size, size, h, w), [0, 1, 4, 2, 5, 3]
    turned = op.permute_dims(c.reshape(x, parts), order)
    return op.reshape(c.emit(turned), [n, deep, h * size, w * size])


def space_to_depth(c: Context) -> Any:
    """Blocks of an area become channels."""
    x, size = c.operand(0), c.attr("blocksize")
    n, ch, h, w = shape_of(x)
    parts = c.reshape(x, (n, ch, h // size, size, w // size, size))
    order = [0, 3, 5, 1, 2, 4] if c.attr("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    turned = c.emit(op.permute_dims(parts, order))
    return op.reshape(turned, [n, ch * size**2, h // size, w // size])


def trilu(c: Context) -> Any:
    """The upper or lower triangle; zeros elsewhere."""
    x = c.operand(0)
    shift = c.integers(1)[0] if c.has(1) else 0
    rows, columns = shape_of(x)[-2:]
    kept = np.triu(np.ones((rows, columns), bool), shift)
    if not c.attr("upper", 1):
        kept = np.tril(np.ones((rows, columns), bool), shift)
    return op.where(relax.const(kept, "bool"), x, c.number(0, x))


def reverse_sequence(c: Context) -> Any:
    """The first `sequence_lens` elements of each row in reverse order."""
    x, lengths = c.operand(0), c.operand(1)
    batch, time = c.attr("batch_axis", 1), c.attr("time_axis", 0)

    def define(data: Any, ends: Any) -> Any:
        def element(*at: Any) -> Any:
            end = tirx.Cast("int64", ends(at[batch]))
            step = tirx.Cast("int64", at[time])
            place = list(at)
            place[time] = tirx.if_then_else(step < end, end - 1 - step, step)
            return data(*place)

        return te.compute(shape_of(x), element, name="reverse_sequence")

    return c.te(define, x, lengths, name="reverse_sequence")


def dropout(c: Context) -> Any:
    """Passes its operand on, as outside training."""
    training = c.has(2) and bool(c.known(2).reshape(-1)[0])
    ratio = float(c.known(1).reshape(-1)[0]) if c.is_known(1) else c.attr("ratio", 0.5)
    if training and ratio:
        raise OperatorError("is in training mode and draws random numbers", "export in eval mode")
    x = c.operand(0)
    mask = np.ones(shape_of(x), bool)
    return [x, relax.const(mask, "bool")][: len(c.node.output)]


CONVERTERS: Mapping[str, Converter] = {
    "Reshape": reshape,
    "Flatten": flatten,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Transpose": transpose,
    "Concat": concat,
    "Split": split,
    "Slice": slice_,
    "Expand": expand,
    "Tile": tile,
    "Pad": pad,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
    "Trilu": trilu,
    "ReverseSequence": reverse_sequence,
    "Dropout": dropout,
}
