"""Activations of recurrent cells, scalar by scalar, with ONNX's names and default parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tvm import tirx

from ansor.errors import OperatorError
from ansor.frontend.importers.operators.recurrent_cells import Activation


def _number(value: float, like: Any) -> Any:
    return tirx.const(value, str(like.ty.dtype))


def sigmoid(x: Any) -> Any:
    """The logistic function."""
    return tirx.sigmoid(x)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return tirx.tanh(x)


def relu(x: Any) -> Any:
    """x where it is not negative (NaN too), else zero."""
    return tirx.Select(x < _number(0, x), _number(0, x), x)


def _affine(alpha: float, beta: float, x: Any) -> Any:
    return _number(alpha, x) * x + _number(beta, x)


def _leaky_relu(alpha: float, _: float, x: Any) -> Any:
    return tirx.Select(x < _number(0, x), _number(alpha, x) * x, x)


def _thresholded_relu(alpha: float, _: float, x: Any) -> Any:
    return tirx.Select(x > _number(alpha, x), x, _number(0, x))


def _scaled_tanh(alpha: float, beta: float, x: Any) -> Any:
    return _number(alpha, x) * tirx.tanh(_number(beta, x) * x)


def _hard_sigmoid(alpha: float, beta: float, x: Any) -> Any:
    low, high = _number(0, x), _number(1, x)
    return tirx.max(low, tirx.min(high, _affine(alpha, beta, x)))


def _elu(alpha: float, _: float, x: Any) -> Any:
    below = _number(alpha, x) * (tirx.exp(tirx.min(x, _number(0, x))) - _number(1, x))
    return tirx.Select(x < _number(0, x), below, x)


def _softsign(_: float, __: float, x: Any) -> Any:
    return x / (_number(1, x) + tirx.abs(x))


def _softplus(_: float, __: float, x: Any) -> Any:
    below = tirx.log(_number(1, x) + tirx.exp(-tirx.abs(x)))
    return tirx.max(x, _number(0, x)) + below


_PLAIN: Mapping[str, Activation] = {"relu": relu, "tanh": tanh, "sigmoid": sigmoid}
_WITH_PARAMETERS: Mapping[str, tuple[Callable[..., Any], float, float]] = {
    "affine": (_affine, 1.0, 0.0),
    "leakyrelu": (_leaky_relu, 0.01, 0.0),
    "thresholdedrelu": (_thresholded_relu, 1.0, 0.0),
    "scaledtanh": (_scaled_tanh, 1.0, 1.0),
    "hardsigmoid": (_hard_sigmoid, 0.2, 0.5),
    "elu": (_elu, 1.0, 0.0),
    "softsign": (_softsign, 0.0, 0.0),
    "softplus": (_softplus, 0.0, 0.0),
}
# Which consume a value of `activation_alpha` and of `activation_beta`.
_TAKES_BETA = frozenset(("affine", "scaledtanh", "hardsigmoid"))
_TAKES_ALPHA = _TAKES_BETA | {"leakyrelu", "thresholdedrelu", "elu"}


def activations(
    names: list[str], alphas: list[float], betas: list[float]
) -> tuple[Activation, ...]:
    """Functions by ONNX's names, whose parameters come in order for those that take some.

    Raises:
        OperatorError: a name that ONNX does not know.
    """
    alpha, beta = iter(alphas), iter(betas)
    found = []
    for name in names:
        lower = name.lower()
        if lower in _PLAIN:
            found.append(_PLAIN[lower])
            continue
        if lower not in _WITH_PARAMETERS:
            raise OperatorError(f"its activation {name} is not supported")
        function, first, second = _WITH_PARAMETERS[lower]
        first = next(alpha, first) if lower in _TAKES_ALPHA else first
        second = next(beta, second) if lower in _TAKES_BETA else second
        found.append(partial(function, first, second))
    return tuple(found)
