"""Quantised tensors and integer products."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm import relax, te, tirx

from ansor.errors import UnsupportedError
from ansor.frontend.importers.conversion import axis_of, dtype_of, shape_of
from ansor.frontend.importers.from_onnx.converters.context import (
    Context,
    Converter,
    dtype_from_onnx,
)
from ansor.frontend.importers.from_onnx.converters.convolution import paddings
from ansor.frontend.importers.operators.by_rank import CONVOLUTIONS

op = relax.op


def _along(c: Context, x: Any, value: Any, axis: int, block: int = 0) -> Any:
    """A scale or zero point of one element, of an axis, or of blocks along it."""
    shape, given = shape_of(x), shape_of(value)
    if int(np.prod(given)) == 1 and len(given) <= 1:
        return c.reshape(value, ())
    if block:
        return _blocks(c, x, value, axis, block)
    if len(given) == 1:
        side = [1] * len(shape)
        side[axis] = given[0]
        return c.reshape(value, side)
    return value


def _blocks(c: Context, x: Any, value: Any, axis: int, block: int) -> Any:
    def define(table: Any) -> Any:
        def element(*at: Any) -> Any:
            return table(*at[:axis], te.indexdiv(at[axis], block), *at[axis + 1 :])

        return te.compute(shape_of(x), element, name="blocks")

    return c.te(define, value, name="blocks")


def _rounded(c: Context, x: Any) -> Any:
    def define(data: Any) -> Any:
        return te.compute(shape_of(x), lambda *at: tirx.nearbyint(data(*at)), name="round")

    return c.te(define, x, name="round")


def quantized(c: Context, x: Any, scale: Any, zero: Any, dtype: str) -> Any:
    """`x / scale`, rounded, ties to even, plus the zero point, within the range of the dtype."""
    if dtype not in ("int8", "uint8", "int16", "uint16", "int32"):
        raise UnsupportedError(f"tensors of {dtype} are not supported")
    limits = np.iinfo(dtype)
    data = _rounded(c, c.emit(op.divide(x, c.cast(scale, dtype_of(x)))))
    if zero is not None:
        data = c.emit(op.add(data, c.cast(zero, dtype_of(x))))
    low, high = c.number(limits.min, data), c.number(limits.max, data)
    return c.cast(c.emit(op.minimum(op.maximum(data, low), high)), dtype)


def quantize(c: Context) -> Any:
    """Numbers as integers of few bits."""
    x = c.cast(c.operand(0), "float32")
    axis, block = c.attr("axis", 1), c.attr("block_size", 0)
    axis = axis_of(axis, len(shape_of(x))) if len(shape_of(x)) > 1 or axis < 1 else 0
    scale = _along(c, x, c.operand(1), axis, block)
    zero = _along(c, x, c.operand(2), axis, block) if c.has(2) else None
    code = c.attr("output_dtype", 0)
    dtype = dtype_of(c.operand(2)) if c.has(2) else dtype_from_onnx(code) if code else "uint8"
    if c.attr("precision", 0) and c.attr("precision", 0) != 1:
        raise UnsupportedError("it divides in float32 only (precision)")
    return quantized(c, x, c.cast(scale, "float32"), zero, dtype)


def dequantize(c: Context) -> Any:
    """The numbers that integers stand for."""
    x = c.operand(0)
    axis, block = c.attr("axis", 1), c.attr("block_size", 0)
    axis = axis_of(axis, len(shape_of(x))) if len(shape_of(x)) > 1 or axis < 1 else 0
    code = c.attr("output_dtype", 0)
    dtype = dtype_from_onnx(code) if code else dtype_of(c.operand(1))
    scale = c.cast(_along(c, x, c.operand(1), axis, block), "float32")
    if c.has(2):
        zero = c.cast(_along(c, x, c.operand(2), axis, block), "int32")
        data = c.emit(op.subtract(c.cast(x, "int32"), zero))
    else:
        data = x
    return c.cast(c.emit(op.multiply(c.cast(data, "float32"), scale)), dtype)


def dynamic_quantize(c: Context) -> Any:
    """Quantised by the range of the values: result, scale, zero point."""
    x = c.operand(0)
    zero, most = c.number(0, x), c.number(255, x)
    low = c.emit(op.minimum(op.min(x), zero))
    high = c.emit(op.maximum(op.max(x), zero))
    span = c.emit(op.divide(op.subtract(high, low), most))
    scale = c.emit(op.where(op.equal(span, zero), c.number(1, x), span))
    middle = c.emit(op.divide(op.negative(low), scale))
    bounded = c.emit(op.minimum(op.maximum(middle, zero), most))
    point = c.cast(_rounded(c, bounded), "uint8")
    return [quantized(c, x, scale, point, "uint8"), scale, point]


def _centred(c: Context, place: int, zero: int, axis: int | None) -> Any:
    """An operand less its zero point, `int32`; the zero point may be of an axis."""
    x = c.cast(c.operand(place), "int32")
    if not c.has(zero):
        return x
    point = c.cast(c.operand(zero), "int32")
    if axis is not None:
        point = _along(c, x, point, axis % len(shape_of(x)))
    return c.emit(op.subtract(x, point))


def matmul_integer(c: Context) -> Any:
    """A product of integers less their zero points, `int32`."""
    return op.matmul(_centred(c, 0, 2, -2), _centred(c, 1, 3, -1), out_dtype="int32")


def qlinear_matmul(c: Context) -> Any:
    """A product of quantised matrices, quantised."""
    total = c.emit(op.matmul(_centred(c, 0, 2, -2), _centred(c, 3, 5, -1), out_dtype="int32"))
    a = c.cast(_along(c, total, c.operand(1), len(shape_of(total)) - 2), "float32")
    b = c.cast(_along(c, total, c.operand(4), len(shape_of(total)) - 1), "float32")
    real = c.emit(op.multiply(c.cast(total, "float32"), op.multiply(a, b)))
    scale, zero = (_along(c, total, c.operand(k), len(shape_of(total)) - 2) for k in (6, 7))
    return quantized(c, real, c.cast(scale, "float32"), zero, dtype_of(c.operand(7)))


def _integer_conv(c: Context, x: Any, weight: Any) -> Any:
    ndim = len(shape_of(x)) - 2
    if ndim not in CONVOLUTIONS:
        raise UnsupportedError(f"{ndim} spatial axes are not supported, one to three are")
    strides = list(c.attr("strides") or [1] * ndim)
    dilations = list(c.attr("dilations") or [1] * ndim)
    before, after = paddings(c, shape_of(x)[2:], shape_of(weight)[2:], strides, dilations)
    return c.emit(
        CONVOLUTIONS[ndim](
            x, weight, strides, [*before, *after], dilations, c.attr("group", 1), out_dtype="int32"
        )
    )


def conv_integer(c: Context) -> Any:
    """A convolution of integers less their zero points, `int32`."""
    return _integer_conv(c, _centred(c, 0, 2, None), _centred(c, 1, 3, 0))


def qlinear_conv(c: Context) -> Any:
    """A convolution of quantised tensors, quantised."""
    total = _integer_conv(c, _centred(c, 0, 2, None), _centred(c, 3, 5, 0))
    if c.has(8):
        total = c.emit(op.add(total, _along(c, total, c.operand(8), 1)))
    scale = op.multiply(_along(c, total, c.operand(1), 1), _along(c, total, c.operand(4), 1))
    real = c.emit(op.multiply(c.cast(total, "float32"), scale))
    out, zero = c.reshape(c.operand(6), ()), c.reshape(c.operand(7), ())
    return quantized(c, real, out, zero, dtype_of(c.operand(7)))


CONVERTERS: Mapping[str, Converter] = {
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic_quantize,
    "MatMulInteger": matmul_integer,
    "QLinearMatMul": qlinear_matmul,
    "ConvInteger": conv_integer,
    "QLinearConv": qlinear_conv,
}
