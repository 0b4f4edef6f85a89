"""Activation functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tvm import relax

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import HALF, dtype_of, shape_of
from ansor.frontend.importers.from_onnx.converters.context import Context, Converter

op = relax.op
Function = Callable[[Context, Any], Any]


def _in_float(function: Function) -> Converter:
    """16-bit numbers are computed in float32."""

    def convert(c: Context) -> Any:
        x = c.operand(0)
        if dtype_of(x) not in HALF:
            return function(c, x)
        return c.cast(c.emit(function(c, c.cast(x, "float32"))), dtype_of(x))

    return convert


def _expm1(c: Context, x: Any) -> Any:
    return op.subtract(op.exp(x), c.number(1, x))


def _where_positive(c: Context, x: Any, positive: Any, negative: Any) -> Any:
    return op.where(op.greater(x, c.number(0, x)), positive, negative)


def _relu(c: Context, x: Any) -> Any:
    return op.nn.relu(x)


def _leaky(c: Context, x: Any) -> Any:
    return op.nn.leakyrelu(x, c.attr("alpha", 0.01))


def _elu(c: Context, x: Any) -> Any:
    alpha = c.number(c.attr("alpha", 1.0), x)
    return _where_positive(c, x, x, op.multiply(alpha, _expm1(c, x)))


def _celu(c: Context, x: Any) -> Any:
    alpha = c.number(c.attr("alpha", 1.0), x)
    negative = op.multiply(alpha, _expm1(c, c.emit(op.divide(x, alpha))))
    return _where_positive(c, x, x, negative)


def _selu(c: Context, x: Any) -> Any:
    alpha = c.number(c.attr("alpha", 1.67326319217681884765625), x)
    gamma = c.number(c.attr("gamma", 1.05070102214813232421875), x)
    return op.multiply(gamma, _where_positive(c, x, x, op.multiply(alpha, _expm1(c, x))))


def _softplus(c: Context, x: Any) -> Any:
    e = c.emit(op.exp(op.negative(op.abs(x))))
    # log(1 + e) loses what e adds where it is small; there e - e²/2 + e³/3 - e⁴/4 is exact.
    series = c.number(-1 / 4, x)
    for factor in (1 / 3, -1 / 2, 1):
        series = op.add(c.number(factor, x), op.multiply(e, series))
    logarithm = op.log(op.add(c.number(1, x), e))
    small = op.less(e, c.number(0.02, x))
    below = op.where(small, op.multiply(e, series), logarithm)
    return op.add(op.nn.relu(x), below)


def _softsign(c: Context, x: Any) -> Any:
    return op.divide(x, op.add(c.number(1, x), op.abs(x)))


def _mish(c: Context, x: Any) -> Any:
    # tanh(log(1 + e)) is (e² + 2e) / (e² + 2e + 2), which is accurate for small e too.
    e = c.emit(op.exp(op.minimum(x, c.number(20, x))))
    grown = c.emit(op.multiply(e, op.add(e, c.number(2, x))))
    return op.multiply(x, op.divide(grown, op.add(grown, c.number(2, x))))


def _swish(c: Context, x: Any) -> Any:
    alpha = c.attr("alpha", 1.0)
    scaled = x if alpha == 1.0 else op.multiply(c.number(alpha, x), x)
    return op.multiply(x, op.sigmoid(scaled))


def _hard_sigmoid(c: Context, x: Any, alpha: float, beta: float) -> Any:
    line = op.add(op.multiply(c.number(alpha, x), x), c.number(beta, x))
    return op.minimum(op.maximum(line, c.number(0, x)), c.number(1, x))


def _hard_swish(c: Context, x: Any) -> Any:
    shifted = op.maximum(op.add(x, c.number(3, x)), c.number(0, x))
    return op.multiply(x, op.divide(op.minimum(shifted, c.number(6, x)), c.number(6, x)))


def _gelu(c: Context, x: Any) -> Any:
    half, one = c.number(0.5, x), c.number(1, x)
    if c.attr("approximate", "none") == "tanh":
        cube = op.multiply(x, op.multiply(x, x))
        inner = op.add(x, op.multiply(c.number(0.044715, x), cube))
        bent = op.tanh(op.multiply(c.number(math.sqrt(2 / math.pi), x), inner))
    else:
        bent = op.erf(op.multiply(x, c.number(math.sqrt(0.5), x)))
    return op.multiply(op.multiply(half, x), op.add(one, bent))


def _thresholded(c: Context, x: Any) -> Any:
    alpha = c.number(c.attr("alpha", 1.0), x)
    return op.where(op.greater(x, alpha), x, c.number(0, x))


def _shrink(c: Context, x: Any) -> Any:
    bound, bias = c.attr("lambd", 0.5), c.number(c.attr("bias", 0.0), x)
    above = op.where(op.greater(x, c.number(bound, x)), op.subtract(x, bias), c.number(0, x))
    return op.where(op.less(x, c.number(-bound, x)), op.add(x, bias), above)


def hard_sigmoid(c: Context, x: Any) -> Any:
    """A line between zero and one."""
    return _hard_sigmoid(c, x, c.attr("alpha", 0.2), c.attr("beta", 0.5))


def prelu(c: Context) -> Any:
    """Negative elements times slopes, which are broadcast to the elements' shape."""
    x, slope = c.operand(0), c.operand(1)
    rank, given = len(shape_of(x)), shape_of(slope)
    fits = len(given) <= rank and all(
        a in (1, b) for a, b in zip(given[::-1], shape_of(x)[::-1], strict=False)
    )
    if not fits and len(given) == 1 and rank > 1 and given[0] == shape_of(x)[1]:
        slope = c.reshape(slope, (given[0], *[1] * (rank - 2)))  # as older exporters mean it
    elif not fits:
        raise OperatorError(f"its slopes {given} cannot be broadcast to {shape_of(x)}")
    return op.where(op.less(x, c.number(0, x)), op.multiply(x, slope), x)


CONVERTERS: Mapping[str, Converter] = {
    "Relu": lambda c: _relu(c, c.operand(0)),
    "PRelu": prelu,
    **{
        name: _in_float(function)
        for name, function in {
            "LeakyRelu": _leaky,
            "Elu": _elu,
            "Celu": _celu,
            "Selu": _selu,
            "Softplus": _softplus,
            "Softsign": _softsign,
            "Mish": _mish,
            "Swish": _swish,
            "HardSigmoid": hard_sigmoid,
            "HardSwish": _hard_swish,
            "Gelu": _gelu,
            "ThresholdedRelu": _thresholded,
            "Shrink": _shrink,
        }.items()
    },
}
