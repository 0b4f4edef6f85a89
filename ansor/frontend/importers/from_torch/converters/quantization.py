"""Quantised tensors as PyTorch's PT2E and torchao write them: the library `quantized_decomposed`.

`relax.quantize` and `relax.dequantize` mark them, as in every importer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import GenericConst

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import dtype_of, is_float, shape_of
from ansor.frontend.importers.from_torch.converters.context import Context, number
from ansor.frontend.importers.from_torch.converters.registry import converts
from ansor.frontend.rewrite import constant

op = relax.op
_QUANTIZED = ("int8", "uint8", "int16", "uint16")
_PER_TENSOR = ("default", "tensor", "tensor2")


@converts(*(f"quantize_per_tensor.{overload}" for overload in _PER_TENSOR))
def quantize_per_tensor(
    context: Context, x: Any, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any
) -> Any:
    """`x / scale`, rounded, ties to even, plus the zero point, between bounds."""
    return _encoded(context, x, scale, zero_point, quant_min, quant_max, -1)


@converts("quantize_per_channel.default")
def quantize_per_channel(
    context: Context, x: Any, scales: Any, zero_points: Any, axis: int, quant_min: Any,
    quant_max: Any,
) -> Any:  # fmt: skip
    """Likewise, with a scale and a zero point for each place along an axis."""
    return _encoded(context, x, scales, zero_points, quant_min, quant_max, axis)


# Only quantisers need the bounds: quantised values are between them.
@converts(*(f"dequantize_per_tensor.{overload}" for overload in _PER_TENSOR))
def dequantize_per_tensor(
    context: Context, x: Any, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any
) -> Any:
    """`(x - zero_point) * scale`."""
    return _decoded(context, x, scale, zero_point, -1)


@converts("dequantize_per_channel.default")
def dequantize_per_channel(
    context: Context, x: Any, scales: Any, zero_points: Any, axis: int, quant_min: Any,
    quant_max: Any,
) -> Any:  # fmt: skip
    """Likewise, with a scale and a zero point for each place along an axis."""
    return _decoded(context, x, scales, zero_points, axis)


def _encoded(
    context: Context, x: Any, scale: Any, zero: Any, low: Any, high: Any, axis: int
) -> Any:
    dtype = context.dtype
    if dtype not in _QUANTIZED:
        raise OperatorError(f"integers of {dtype} are not supported")
    parameters = _parameters(context, scale, zero, dtype)
    codes = op.quantize(context.cast(x, "float32"), *parameters, axis, dtype)
    limits = np.iinfo(dtype)
    if low != limits.min:
        codes = op.maximum(context.emit(codes), context.cast(low, dtype))
    if high != limits.max:
        codes = op.minimum(context.emit(codes), context.cast(high, dtype))
    return codes


def _decoded(context: Context, x: Any, scale: Any, zero: Any, axis: int) -> Any:
    dtype = dtype_of(x)
    if is_float(dtype):
        raise OperatorError(
            f"its operand is {dtype}", "a quantize is missing before it: quantise the model again"
        )
    parameters = _parameters(context, scale, zero, dtype)
    return context.cast(context.emit(op.dequantize(x, *parameters, axis)), context.dtype)


def _parameters(context: Context, scale: Any, zero: Any, dtype: str) -> tuple[Any, Any]:
    """Scale, `float32`, and zero point, of the integers' dtype.

    Raises:
        OperatorError: a scale that is known, and not positive or not finite.
    """
    _check_scale(scale)
    factor = context.cast(scale, "float32")
    point = constant(np.zeros(shape_of(factor)), dtype) if zero is None else zero
    size = int(np.prod(shape_of(factor)))
    shape = () if size == 1 else (size,)
    return context.reshape(factor, shape), context.reshape(context.cast(point, dtype), shape)


def _check_scale(scale: Any) -> None:
    if isinstance(scale, GenericConst):
        values = np.asarray(scale.value.numpy(), np.float64).reshape(-1)
    elif isinstance(scale, float | int):
        values = np.asarray([scale], np.float64)
    else:
        return
    wrong = values[~(np.isfinite(values) & (values > 0))]
    if wrong.size:
        raise OperatorError(
            f"its scale is {wrong[0]:g}, not positive and finite", "quantise the model again"
        )


@converts("choose_qparams.tensor")
def choose_parameters(
    context: Context, x: Any, quant_min: int, quant_max: int, eps: float
) -> list[Any]:
    """Scale, `[1] float64`, and zero point, `[1] int64`, of the range of the values."""
    zero, least = number(0.0, "float32"), number(quant_min, "float32")
    most, span = number(quant_max, "float32"), number(float(quant_max - quant_min), "float32")
    x = context.cast(x, "float32")
    low = context.emit(op.minimum(op.min(x), zero))
    high = context.emit(op.maximum(op.max(x), zero))
    ratio = op.divide(op.subtract(high, low), span)
    scale = context.emit(op.maximum(ratio, number(eps, "float32")))
    point = context.emit(op.subtract(least, op.round(op.divide(low, scale))))
    bounded = context.emit(op.minimum(op.maximum(point, least), most))
    results = (context.cast(scale, "float64"), context.cast(bounded, "int64"))
    return [context.reshape(value, (1,)) for value in results]
