"""Quantised tensors: integers, and the numbers that they stand for.

`relax.quantize` and `relax.dequantize` mark them. The pass `passes/integer/form.py` makes
arithmetic of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm import relax, te

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import axis_of, dtype_of, is_float, shape_of
from ansor.frontend.importers.from_onnx.converters.context import (
    Context,
    Converter,
    dtype_from_onnx,
)
from ansor.frontend.rewrite import constant

op = relax.op
_QUANTIZED = ("int8", "uint8", "int16", "uint16")


def scale_at(c: Context, place: int) -> Any:
    """An operand that is a scale.

    Raises:
        OperatorError: it is known, and not positive or not finite.
    """
    if c.is_known(place):
        values = c.known(place).astype(np.float64)
        wrong = values[~(np.isfinite(values) & (values > 0))]
        if wrong.size:
            raise OperatorError(
                f"its scale {c.node.input[place]!r} is {wrong[0]:g}, not positive and finite",
                "quantise the model again",
            )
    return c.operand(place)


def zero_at(c: Context, place: int) -> Any:
    """An operand that is a zero point; None if it is left out."""
    return c.operand(place) if c.has(place) else None


def encode(c: Context, x: Any, scale: Any, zero: Any, dtype: str, axis: int = -1) -> Any:
    """`x / scale`, rounded, ties to even, plus the zero point, within the range of the dtype.

    Args:
        scale: of the whole tensor, or a vector along the axis.
        zero: likewise; None for 0.

    Raises:
        OperatorError: integers of another number of bits.
    """
    if dtype not in _QUANTIZED:
        raise OperatorError(f"tensors of {dtype} are not supported")
    factor, point = _parameters(c, scale, zero, dtype)
    return c.emit(op.quantize(c.cast(x, "float32"), factor, point, axis, dtype))


def decode(c: Context, x: Any, scale: Any, zero: Any, axis: int = -1) -> Any:
    """The float32 numbers that integers stand for; see `encode`.

    Raises:
        OperatorError: the tensor does not hold integers.
    """
    dtype = dtype_of(x)
    if is_float(dtype):
        raise OperatorError(
            f"the tensor that it takes for integers is {dtype}",
            "a QuantizeLinear is missing before it: quantise the model again",
        )
    factor, point = _parameters(c, scale, zero, dtype)
    return c.emit(op.dequantize(x, factor, point, axis, "float32"))


def _parameters(c: Context, scale: Any, zero: Any, dtype: str) -> tuple[Any, Any]:
    """Scale and zero point, without dimensions or as vectors of one size."""
    size = int(np.prod(shape_of(scale)))
    shape = () if size == 1 else (size,)
    point = constant(np.zeros(shape), dtype) if zero is None else zero
    if int(np.prod(shape_of(point))) == 1 != size:
        point = c.broadcast(c.reshape(point, (1,)), shape)
    return c.reshape(c.cast(scale, "float32"), shape), c.reshape(point, shape)


def _axis(c: Context, x: Any) -> int:
    rank = len(shape_of(x))
    return axis_of(c.attr("axis", 1), rank) if rank > 1 else 0


def quantize(c: Context) -> Any:
    """Numbers as integers of few bits."""
    code = c.attr("output_dtype", 0)
    dtype = dtype_of(c.operand(2)) if c.has(2) else dtype_from_onnx(code) if code else "uint8"
    if c.attr("precision", 0) not in (0, 1):
        raise OperatorError("it divides in float32 only (precision)")
    x, scale, zero = c.cast(c.operand(0), "float32"), scale_at(c, 1), zero_at(c, 2)
    if not c.attr("block_size", 0):
        return encode(c, x, scale, zero, dtype, _axis(c, x))
    one, none = c.number(1, x), c.cast(_blocks(c, x, zero), "float32") if c.has(2) else None
    rounded = op.round(op.divide(x, c.cast(_blocks(c, x, scale), "float32")))
    moved = c.emit(rounded if none is None else op.add(rounded, none))
    return encode(c, moved, one, None, dtype)


def dequantize(c: Context) -> Any:
    """The numbers that integers stand for."""
    x, code = c.operand(0), c.attr("output_dtype", 0)
    scale, zero = scale_at(c, 1), zero_at(c, 2)
    dtype = dtype_from_onnx(code) if code else dtype_of(scale)
    if not c.attr("block_size", 0):
        return c.cast(decode(c, x, scale, zero, _axis(c, x)), dtype)
    centred = c.cast(x, "int32")
    if zero is not None:
        centred = c.emit(op.subtract(centred, c.cast(_blocks(c, x, zero), "int32")))
    factor = c.cast(_blocks(c, x, scale), "float32")
    return c.cast(c.emit(op.multiply(c.cast(centred, "float32"), factor)), dtype)


def _blocks(c: Context, x: Any, value: Any) -> Any:
    """A scale or zero point of blocks along the axis, for each element."""
    axis, block = _axis(c, x), c.attr("block_size", 0)

    def define(table: Any) -> Any:
        def element(*at: Any) -> Any:
            return table(*at[:axis], te.indexdiv(at[axis], block), *at[axis + 1 :])

        return te.compute(shape_of(x), element, name="blocks")

    return c.te(define, value, name="blocks")


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
    point = c.cast(c.emit(op.round(bounded)), "uint8")
    return [encode(c, x, scale, point, "uint8"), scale, point]


CONVERTERS: Mapping[str, Converter] = {
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic_quantize,
}
