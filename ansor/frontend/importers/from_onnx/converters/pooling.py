"""Pooling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm import relax, te, tirx

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import HALF, dtype_of, is_float, shape_of
from ansor.frontend.importers.from_onnx.converters.context import Context, Converter
from ansor.frontend.importers.from_onnx.converters.convolution import paddings
from ansor.frontend.importers.operators.pooling import (
    Windows,
    average_pool,
    max_pool,
    max_pool_indices,
    pooling_windows,
)

op = relax.op


def _windows(c: Context, x: Any) -> Windows:
    extents = shape_of(x)[2:]
    kernel = list(c.attr("kernel_shape"))
    ndim = len(kernel)
    strides = list(c.attr("strides") or [1] * ndim)
    dilations = list(c.attr("dilations") or [1] * ndim)
    before, after = paddings(c, extents, kernel, strides, dilations)
    is_ceil = bool(c.attr("ceil_mode", 0))
    return pooling_windows(extents, kernel, strides, before, after, dilations, ceil_mode=is_ceil)


def max_(c: Context) -> Any:
    """The largest element of each window, and where it lies in the flattened tensor."""
    x = c.operand(0)
    at = _windows(c, x)
    wide = "float32" if dtype_of(x) in HALF else dtype_of(x)
    values = c.cast(c.emit(max_pool(c.bb, c.cast(x, wide), at)), dtype_of(x))
    if len(c.node.output) == 1:
        return values
    return [values, _places(c, x, at)]


def _places(c: Context, x: Any, at: Windows) -> Any:
    """Places in the whole tensor; columns first for `storage_order` 1."""
    flat = c.emit(max_pool_indices(c.bb, c.cast(x, "float32"), at))
    shape = shape_of(x)
    if c.attr("storage_order", 0):
        if len(at.extents) != 2:
            raise OperatorError("storage_order=1 is supported with two spatial axes only")
        rows, columns = at.extents
        width, height = c.number(columns, flat), c.number(rows, flat)
        row = op.floor_divide(flat, width)
        flat = c.emit(op.add(op.multiply(op.floor_mod(flat, width), height), row))
    size = int(np.prod(shape[2:], dtype=np.int64))
    base = np.arange(shape[0] * shape[1], dtype=np.int64) * size
    first = base.reshape(*shape[:2], *[1] * (len(shape) - 2))
    return op.add(flat, relax.const(first, "int64"))


def average(c: Context) -> Any:
    """The mean of each window."""
    x = c.operand(0)
    wide = "float32" if dtype_of(x) in HALF else dtype_of(x)
    include = bool(c.attr("count_include_pad", 0))
    found = average_pool(c.bb, c.cast(x, wide), _windows(c, x), count_include_pad=include)
    return c.cast(c.emit(found), dtype_of(x))


def lp(c: Context) -> Any:
    """The p-norm of each window."""
    x, p = c.operand(0), c.attr("p", 2)
    power = op.power(op.abs(x), c.number(p, x))
    at = _windows(c, x)
    total = average_pool(c.bb, c.emit(power), at, count_include_pad=True, divisor=1)
    return op.power(c.emit(total), c.number(1 / p, x))


def _global(function: Any) -> Converter:
    def convert(c: Context) -> Any:
        x = c.operand(0)
        return function(x, list(range(2, len(shape_of(x)))), True)

    return convert


def global_average(c: Context) -> Any:
    """The mean of each channel."""
    x = c.operand(0)
    if not is_float(dtype_of(x)):
        raise OperatorError("it takes floating-point numbers only")
    return op.mean(x, list(range(2, len(shape_of(x)))), True)


def global_lp(c: Context) -> Any:
    """The p-norm of each channel."""
    x, p = c.operand(0), c.attr("p", 2)
    axes = list(range(2, len(shape_of(x))))
    total = op.sum(op.power(op.abs(x), c.number(p, x)), axes, True)
    return op.power(total, c.number(1 / p, x))


def max_unpool(c: Context) -> Any:
    """Elements put back where they came from, zeros elsewhere."""
    x, places = c.operand(0), c.operand(1)
    kernel = list(c.attr("kernel_shape"))
    ndim = len(kernel)
    strides, pads = c.attr("strides") or [1] * ndim, c.attr("pads") or [0] * 2 * ndim
    shape = list(shape_of(x))
    own = shape[:2] + [
        (e - 1) * s + k - pads[a] - pads[a + ndim]
        for a, (e, s, k) in enumerate(zip(shape[2:], strides, kernel, strict=True))
    ]
    result = c.integers(2) if c.has(2) else own
    count, total = int(np.prod(shape)), int(np.prod(own))
    flat, index = c.reshape(x, (count,)), c.reshape(places, (count,))
    zeros = c.broadcast(c.number(0, x), (total,))
    found = c.reshape(c.emit(op.scatter_elements(zeros, index, flat, 0)), own)
    if any(r < e for r, e in zip(result, own, strict=True)):
        raise OperatorError(f"its output_shape {result} is smaller than {own}")
    # Places are of the shape that the attributes say, whatever shape the result has.
    width = [side for r, e in zip(result, own, strict=True) for side in (0, r - e)]
    return op.nn.pad(found, width) if any(width) else found


def lrn(c: Context) -> Any:
    """Normalised by the squares of channels nearby."""
    x, size = c.operand(0), c.attr("size")
    alpha, beta, bias = c.attr("alpha", 1e-4), c.attr("beta", 0.75), c.attr("bias", 1.0)
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    channels = shape_of(x)[1]

    def define(data: Any) -> Any:
        k = te.reduce_axis((0, size), "k")

        def square(n: Any, ch: Any, *at: Any) -> Any:
            place = ch + k - before
            inside = tirx.all(place >= 0, place < channels)
            value = tirx.if_then_else(inside, data(n, place, *at), tirx.const(0, data.dtype))
            return te.sum(value * value, axis=k)

        return te.compute(data.shape, square, name="squares")

    assert before + after + 1 == size
    squares = c.te(define, x, name="squares")
    scaled = op.add(c.number(bias, x), op.multiply(c.number(alpha / size, x), squares))
    return op.divide(x, op.power(scaled, c.number(beta, x)))


CONVERTERS: Mapping[str, Converter] = {
    "MaxPool": max_,
    "AveragePool": average,
    "LpPool": lp,
    "GlobalAveragePool": global_average,
    "GlobalMaxPool": _global(op.max),
    "GlobalLpPool": global_lp,
    "MaxUnpool": max_unpool,
    "LRN": lrn,
}
