"""Quantised operators of ONNX Runtime's own domain, "com.microsoft".

`onnxruntime.quantization` writes them in its format QOperator. Each is an operator of ONNX between
`dequantize` and `quantize`. The order of operands is that of ONNX Runtime's ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from tvm import relax

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import axis_of, dtype_of, shape_of
from ansor.frontend.importers.from_onnx.converters import linear, pooling, quantization
from ansor.frontend.importers.from_onnx.converters.context import Context, Converter
from ansor.frontend.importers.from_onnx.converters.quantization import (
    decode,
    encode,
    scale_at,
    zero_at,
)
from ansor.frontend.rewrite import constant

op = relax.op
DOMAIN = "com.microsoft"


def _decoded(c: Context, place: int, axis: int = -1) -> Any:
    """An operand that its scale and its zero point follow."""
    return decode(c, c.operand(place), scale_at(c, place + 1), zero_at(c, place + 2), axis)


def _encoded(c: Context, x: Any, place: int, dtype: str) -> Any:
    """A result whose scale is at a place, and its zero point after that."""
    return encode(c, x, scale_at(c, place), zero_at(c, place + 1), dtype)


def _binary(function: Callable[[Any, Any], Any]) -> Converter:
    def convert(c: Context) -> Any:
        result = c.emit(function(_decoded(c, 0), _decoded(c, 3)))
        return _encoded(c, result, 6, dtype_of(c.operand(0)))

    return convert


def _unary(function: Callable[[Context, Any], Any]) -> Converter:
    def convert(c: Context) -> Any:
        result = c.emit(function(c, _decoded(c, 0)))
        return _encoded(c, result, 3, dtype_of(c.operand(0)))

    return convert


def _softmax(c: Context, x: Any) -> Any:
    """Before operator set 13 over all axes from the given one on."""
    shape = shape_of(x)
    axis = axis_of(c.attr("axis", -1), len(shape))
    if c.attr("opset", 13) >= 13:
        return op.nn.softmax(x, axis)
    flat = c.reshape(x, (int(np.prod(shape[:axis])), -1))
    return op.reshape(op.nn.softmax(flat, 1), shape)


def _pool(convert: Converter) -> Callable[[Context, Any], Any]:
    def pooled(c: Context, x: Any) -> Any:
        if c.attr("channels_last", 0):
            raise OperatorError("channels_last is not supported", "export it channels first")
        return convert(replace(c, values=(x,)))

    return pooled


def concat(c: Context) -> Any:
    """Tensors in a row, each with its scale; those of the result come first."""
    parts = [_decoded(c, place) for place in range(2, len(c.values), 3)]
    joined = c.emit(op.concat(parts, c.attr("axis")))
    return _encoded(c, joined, 0, dtype_of(c.operand(2)))


def where(c: Context) -> Any:
    """Elements of one of two tensors."""
    result = c.emit(op.where(c.operand(0), _decoded(c, 1), _decoded(c, 4)))
    return _encoded(c, result, 7, dtype_of(c.operand(1)))


def gemm(c: Context) -> Any:
    """`alpha * A @ B + C`; C is in steps of the sums, and a result without a scale is float32."""
    axis = 0 if c.attr("transB", 0) else 1
    a, b = _decoded(c, 0), _decoded(c, 3, axis)
    steps = c.emit(op.multiply(c.reshape(c.operand(1), ()), c.operand(4)))
    scale = c.emit(op.multiply(steps, constant(c.attr("alpha", 1.0), "float32")))
    bias = (decode(c, c.operand(6), scale, None, -1),) if c.has(6) else ()
    result = c.emit(linear.gemm(replace(c, values=(a, b, *bias))))
    return _encoded(c, result, 7, dtype_of(c.operand(0))) if c.has(7) else result


def matmul_to_float(c: Context) -> Any:
    """A product of quantised matrices as float32 numbers, and a bias."""
    a = decode(c, c.operand(0), scale_at(c, 2), zero_at(c, 4), -2)
    b = decode(c, c.operand(1), scale_at(c, 3), zero_at(c, 5), -1)
    result = c.emit(op.matmul(a, b))
    return op.add(result, c.operand(6)) if c.has(6) else result


CONVERTERS: Mapping[str, Converter] = {
    "QuantizeLinear": quantization.quantize,
    "DequantizeLinear": quantization.dequantize,
    "QLinearAdd": _binary(op.add),
    "QLinearMul": _binary(op.multiply),
    "QLinearSigmoid": _unary(lambda _, x: op.sigmoid(x)),
    "QLinearLeakyRelu": _unary(lambda c, x: op.nn.leakyrelu(x, c.attr("alpha", 0.01))),
    "QLinearSoftmax": _unary(_softmax),
    "QLinearAveragePool": _unary(_pool(pooling.average)),
    "QLinearGlobalAveragePool": _unary(_pool(pooling.global_average)),
    "QLinearConcat": concat,
    "QLinearWhere": where,
    "QGemm": gemm,
    "MatMulIntegerToFloat": matmul_to_float,
}
