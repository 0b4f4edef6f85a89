"""Convolutions over lines, areas and volumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import relax

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import HALF, dtype_of, shape_of
from ansor.frontend.importers.from_onnx.converters.context import Context, Converter
from ansor.frontend.importers.operators.by_rank import CONVOLUTIONS, TRANSPOSED_CONVOLUTIONS

op = relax.op


def paddings(
    c: Context, extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[list[int], list[int]]:  # fmt: skip
    """Padding before and after each axis, given or by `auto_pad`."""
    ndim = len(extents)
    mode = c.attr("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        pads = list(c.attr("pads") or [0] * 2 * ndim)
        return pads[:ndim], pads[ndim:]
    if mode == "VALID":
        return [0] * ndim, [0] * ndim
    sides = []
    for e, k, s, d in zip(extents, kernel, strides, dilations, strict=True):
        total = max(0, (-(-e // s) - 1) * s + (k - 1) * d + 1 - e)
        less = total // 2
        sides.append((less, total - less) if mode == "SAME_UPPER" else (total - less, less))
    return [b for b, _ in sides], [a for _, a in sides]


def conv(c: Context) -> Any:
    """A convolution, and a bias per channel."""
    return convolve(c, c.operand(0), c.operand(1), c.operand(2) if c.has(2) else None)


def convolve(c: Context, x: Any, weight: Any, bias: Any = None) -> Any:
    """A convolution with the attributes of the node.

    Raises:
        OperatorError: other than one to three spatial axes.
    """
    ndim = _ndim(x, CONVOLUTIONS)
    kernel = shape_of(weight)[2:]
    strides = list(c.attr("strides") or [1] * ndim)
    dilations = list(c.attr("dilations") or [1] * ndim)
    before, after = paddings(c, shape_of(x)[2:], kernel, strides, dilations)
    dtype = dtype_of(x)
    wide = "float32" if dtype in HALF else dtype
    result = c.emit(
        CONVOLUTIONS[ndim](
            c.cast(x, wide), c.cast(weight, wide), strides, [*before, *after], dilations,
            c.attr("group", 1), out_dtype=wide,
        )
    )  # fmt: skip
    return _with_bias(c, c.cast(result, dtype), bias)


def _ndim(x: Any, table: Mapping[int, Any]) -> int:
    ndim = len(shape_of(x)) - 2
    if ndim not in table:
        raise OperatorError(f"{ndim} spatial axes are not supported, one to three are")
    return ndim


def _with_bias(c: Context, x: Any, bias: Any) -> Any:
    if bias is None:
        return x
    ndim = len(shape_of(x)) - 2
    return c.emit(
        op.add(
            x, c.reshape(bias, (1, -1 if not shape_of(bias) else shape_of(bias)[0], *[1] * ndim))
        )
    )


def conv_transpose(c: Context) -> Any:
    """A transposed convolution."""
    x, weight = c.operand(0), c.operand(1)
    ndim = _ndim(x, TRANSPOSED_CONVOLUTIONS)
    kernel, extents = shape_of(weight)[2:], shape_of(x)[2:]
    strides = list(c.attr("strides") or [1] * ndim)
    dilations = list(c.attr("dilations") or [1] * ndim)
    extra = list(c.attr("output_padding") or [0] * ndim)
    before, after = _transposed_pads(c, extents, kernel, strides, dilations, extra)
    # Padding cuts off the result. Padding that the operator does not support is cut, or added,
    # after it.
    groups = c.attr("group", 1)
    dtype = dtype_of(x)
    wide = "float32" if dtype in HALF else dtype
    x, weight = c.cast(x, wide), c.cast(weight, wide)
    weight = _plain_kernel(c, weight, dilations)
    parts = _transposed(c, x, weight, strides, groups)
    result = _cropped(c, parts, before, after, extra)
    return _with_bias(c, c.cast(result, dtype), c.operand(2) if c.has(2) else None)


def _transposed_pads(
    c: Context, extents: Any, kernel: Any, strides: Any, dilations: Any, extra: Any
) -> tuple[list[int], list[int]]:
    ndim = len(extents)
    mode, wanted = c.attr("auto_pad", "NOTSET"), c.attr("output_shape")
    pads = list(c.attr("pads") or [0] * 2 * ndim)
    if wanted is None and mode in ("NOTSET", "VALID", ""):
        return pads[:ndim], pads[ndim:]
    wanted = [e * s for e, s in zip(extents, strides, strict=True)] if wanted is None else wanted
    before, after = [], []
    for e, k, s, d, o, w in zip(
        extents, kernel, strides, dilations, extra, list(wanted)[-ndim:], strict=True
    ):
        total = s * (e - 1) + o + (k - 1) * d + 1 - w
        less = total // 2
        first, last = (less, total - less) if mode == "SAME_UPPER" else (total - less, less)
        before.append(first)
        after.append(last)
    return before, after


def _plain_kernel(c: Context, weight: Any, dilations: Sequence[int]) -> Any:
    """The kernel with zeros between its elements."""
    for axis, dilation in enumerate(dilations, 2):
        if dilation == 1:
            continue
        shape = shape_of(weight)
        apart = c.reshape(weight, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
        width = [(0, 0)] * (len(shape) + 1)
        width[axis + 1] = (0, dilation - 1)
        flat = [side for pair in width for side in pair]
        padded = c.emit(op.nn.pad(apart, flat))
        merged = [*shape[:axis], shape[axis] * dilation, *shape[axis + 1 :]]
        merged_weight = c.reshape(padded, merged)
        end = (shape[axis] - 1) * dilation + 1
        weight = c.emit(op.strided_slice(merged_weight, [axis], [0], [end]))
    return weight


def _transposed(c: Context, x: Any, weight: Any, strides: list[int], groups: int) -> Any:
    """Without padding; each group by itself, which TVM computes right."""
    ndim = len(shape_of(x)) - 2
    function = TRANSPOSED_CONVOLUTIONS[ndim]
    if groups == 1:
        return c.emit(function(x, weight, strides, [0] * 2 * ndim))
    xs, weights = (c.emit(op.split(value, groups, axis)) for value, axis in ((x, 1), (weight, 0)))
    parts = [
        c.emit(
            function(
                c.emit(relax.TupleGetItem(xs, g)),
                c.emit(relax.TupleGetItem(weights, g)),
                strides,
                [0] * 2 * ndim,
            )
        )
        for g in range(groups)
    ]
    return c.emit(op.concat(parts, 1))


def _cropped(c: Context, x: Any, before: list[int], after: list[int], extra: list[int]) -> Any:
    for axis, (b, a, o) in enumerate(zip(before, after, extra, strict=True), 2):
        extent = shape_of(x)[axis]
        first, end = max(0, b), extent - max(0, a - o)
        if (first, end) != (0, extent):
            x = c.emit(op.strided_slice(x, [axis], [first], [end]))
        low, high = max(0, -b), max(0, o - a)
        if low or high:
            width = [0] * 2 * len(shape_of(x))
            width[2 * axis], width[2 * axis + 1] = low, high
            x = c.emit(op.nn.pad(x, width))
    return x


CONVERTERS: Mapping[str, Converter] = {"Conv": conv, "ConvTranspose": conv_transpose}
