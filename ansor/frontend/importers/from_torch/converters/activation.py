"""Activations that a network's layers apply."""

from __future__ import annotations

from typing import Any

from tvm import relax

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import axis_of, shape_of
from ansor.frontend.importers.from_torch.converters.context import Context, number
from ansor.frontend.importers.from_torch.converters.elementwise import in_float, wide
from ansor.frontend.importers.from_torch.converters.registry import converts

op = relax.op


@converts("relu.default")
def relu(context: Context, x: Any) -> Any:
    """`max(x, 0)`."""
    return op.nn.relu(x)


@converts("leaky_relu.default")
def leaky_relu(context: Context, x: Any, negative_slope: float) -> Any:
    """`x`, scaled where it is negative."""
    if not 0 <= negative_slope <= 1:
        zero, slope = number(0, context.dtype), number(negative_slope, context.dtype)
        return op.where(op.greater(x, zero), x, op.multiply(x, slope))
    return op.nn.leakyrelu(x, negative_slope)


@converts("gelu.default")
def gelu(context: Context, x: Any, approximate: str) -> Any:
    """Gaussian error linear unit."""
    function = {"none": op.nn.gelu, "tanh": op.nn.gelu_tanh}.get(approximate)
    if function is None:
        raise OperatorError(f"its argument approximate={approximate!r} is not supported")
    return in_float(context, function, x)


@converts("silu.default")
def silu(context: Context, x: Any) -> Any:
    """`x * sigmoid(x)`."""
    return in_float(context, op.nn.silu, x)


@converts("hardtanh.default")
def hardtanh(context: Context, x: Any, min_val: Any, max_val: Any) -> Any:
    """`x` between bounds."""
    low, high = number(min_val, context.dtype), number(max_val, context.dtype)
    return op.minimum(op.maximum(x, low), high)


@converts("elu.default")
def elu(context: Context, x: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    """`x` where it is positive, else `alpha * (exp(input_scale * x) - 1)`; both times `scale`."""

    def function(value: Any) -> Any:
        dtype = wide(context.dtype)
        zero, one = number(0, dtype), number(1, dtype)
        scaled = op.multiply(op.minimum(value, zero), number(input_scale, dtype))
        below = op.multiply(op.subtract(op.exp(scaled), one), number(alpha * scale, dtype))
        above = op.multiply(value, number(scale, dtype)) if scale != 1 else value
        return op.where(op.greater(value, zero), above, below)

    return in_float(context, function, x)


@converts("_softmax.default", "softmax.int")
def softmax(context: Context, x: Any, dim: int, half_to_float: bool = False) -> Any:
    """Softmax along one axis."""
    return _along(context, op.nn.softmax, x, dim)


@converts("_log_softmax.default", "log_softmax.int")
def log_softmax(context: Context, x: Any, dim: int, half_to_float: bool = False) -> Any:
    """Logarithm of the softmax along one axis."""
    return _along(context, op.nn.log_softmax, x, dim)


def _along(context: Context, function: Any, x: Any, dim: int) -> Any:
    shape = shape_of(x)
    if not shape:  # one element
        row = context.reshape(x, (1,))
        return op.reshape(in_float(context, lambda v: function(v, 0), row), [])
    return in_float(context, lambda v: function(v, axis_of(dim, len(shape))), x)
