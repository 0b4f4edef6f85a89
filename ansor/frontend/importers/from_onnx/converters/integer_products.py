"""Products and convolutions of integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import relax

from ansor.frontend.importers.conversion import dtype_of, shape_of
from ansor.frontend.importers.from_onnx.converters.context import Context, Converter
from ansor.frontend.importers.from_onnx.converters.convolution import convolve
from ansor.frontend.importers.from_onnx.converters.quantization import (
    decode,
    encode,
    scale_at,
    zero_at,
)

op = relax.op


def _centred(c: Context, place: int, zero: int, axis: int) -> Any:
    """An operand less its zero point, `int32`; the zero point may be of an axis."""
    x = c.cast(c.operand(place), "int32")
    if not c.has(zero):
        return x
    point, rank = c.cast(c.operand(zero), "int32"), len(shape_of(x))
    shape = shape_of(point)
    if shape in ((), (1,)):
        point = c.reshape(point, ())
    elif len(shape) == 1:
        point = c.reshape(point, [shape[0] if k == axis % rank else 1 for k in range(rank)])
    return c.emit(op.subtract(x, point))


def matmul_integer(c: Context) -> Any:
    """A product of integers less their zero points, `int32`."""
    return op.matmul(_centred(c, 0, 2, -2), _centred(c, 1, 3, -1), out_dtype="int32")


def conv_integer(c: Context) -> Any:
    """A convolution of integers less their zero points, `int32`."""
    return convolve(c, _centred(c, 0, 2, 1), _centred(c, 1, 3, 0))


def _decoded(c: Context, place: int, axis: int) -> Any:
    """An operand that its scale and its zero point follow."""
    x = c.operand(place)
    return decode(c, x, scale_at(c, place + 1), zero_at(c, place + 2), axis % len(shape_of(x)))


def _encoded(c: Context, x: Any, place: int, axis: int) -> Any:
    """A result whose scale is at a place, and its zero point after that."""
    zero = c.operand(place + 1)
    return encode(c, x, scale_at(c, place), zero, dtype_of(zero), axis % len(shape_of(x)))


def qlinear_matmul(c: Context) -> Any:
    """A product of quantised matrices, quantised."""
    product = c.emit(op.matmul(_decoded(c, 0, -2), _decoded(c, 3, -1)))
    return _encoded(c, product, 6, -2)


def qlinear_conv(c: Context) -> Any:
    """A convolution of quantised tensors, quantised."""
    total = convolve(c, _decoded(c, 0, 1), _decoded(c, 3, 0))
    if c.has(8):
        total = c.emit(op.add(total, _bias(c, len(shape_of(total)))))
    return _encoded(c, total, 6, 1)


def _bias(c: Context, rank: int) -> Any:
    """The bias of a convolution, in steps of its sums."""
    steps = c.operand(8)
    scale = c.emit(op.multiply(c.reshape(c.operand(1), ()), c.operand(4)))
    along = c.reshape(
        steps, (1, -1 if not shape_of(steps) else shape_of(steps)[0], *[1] * (rank - 2))
    )
    return decode(c, along, scale, None, 1)


CONVERTERS: Mapping[str, Converter] = {
    "MatMulInteger": matmul_integer,
    "QLinearMatMul": qlinear_matmul,
    "ConvInteger": conv_integer,
    "QLinearConv": qlinear_conv,
}
