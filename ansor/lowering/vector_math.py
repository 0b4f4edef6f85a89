"""Transcendental functions that vectorise.

LLVM turns a vector of `exp` into one library call per element. Inside `vector_math()` TVM lowers
the functions below to polynomials instead, which stay in vector registers; errors are a few units
in the last place. Reference builds stay outside and keep the library's functions.
Polynomials: Cephes (expf); erf after Abramowitz and Stegun 7.1.26.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx

_ACTIVE: ContextVar[bool] = ContextVar("vector_math", default=False)
# Where TVM looks for the lowering of a function, in this order.
_RULES = (
    "llvm.FLowerIntrinsic",
    "llvm.FLegalize",
    "default.FLowerIntrinsic",
    "default.FLegalize",
)


@dataclass(frozen=True)
class _Exponential:
    """Numbers of Cephes' expf, for float32: 2^n times a polynomial on the rest.

    Attributes:
        ln2: in two parts; multiples of the first part are exact.
        range: of arguments for which the power of two nearest to the result is finite.
        overflow: largest argument with a finite result; the rest is then up to ln 2.
        polynomial: of the rest, the highest power first.
    """

    ln2: tuple[float, float] = (0.693359375, -2.12194440e-4)
    range: tuple[float, float] = (-87.33654, 88.37626)
    overflow: float = 88.72283
    polynomial: tuple[float, ...] = (
        1.9875691500e-4,
        1.3981999507e-3,
        8.3334519073e-3,
        4.1665795894e-2,
        1.6666665459e-1,
        0.5,
    )


@dataclass(frozen=True)
class _ErrorFunction:
    """Numbers of the error function.

    Attributes:
        scale: Abramowitz and Stegun's p.
        far: their a5 to a1.
        near: Taylor's series at zero, the highest power first.
    """

    scale: float = 0.3275911
    far: tuple[float, ...] = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
    near: tuple[float, ...] = (5.2239776e-3, -2.6866171e-2, 1.1283792e-1, -3.7612639e-1, 1.1283792)


_EXP, _ERF = _Exponential(), _ErrorFunction()


@contextmanager
def vector_math() -> Iterator[None]:
    """Lowers the functions of this module to polynomials while it is open."""
    token = _ACTIVE.set(True)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def _exp(x: Any) -> Any:
    """2^n times a polynomial on the rest, ``|rest| <= ln 2 / 2``; NaN stays NaN."""
    low, high = (_like(x, limit) for limit in _EXP.range)
    log2_e = _like(x, math.log2(math.e))
    n = tirx.floor(tirx.max(tirx.min(x, high), low) * log2_e + _like(x, 0.5))
    ln2_high, ln2_low = (_like(x, part) for part in _EXP.ln2)
    rest = x - n * ln2_high - n * ln2_low
    value = _horner(rest, _EXP.polynomial) * rest * rest + rest + _like(x, 1.0)
    lanes = _lanes(x)
    exponent = (n.astype(f"int32{lanes}") + _constant(127, f"int32{lanes}")) << _constant(
        23, f"int32{lanes}"
    )
    power = value * tirx.reinterpret(f"float32{lanes}", exponent)
    zero, infinity = _like(x, 0.0), _like(x, float("inf"))
    overflow = _like(x, _EXP.overflow)
    return tirx.Select(x > overflow, infinity, tirx.Select(x < low, zero, power))


def _sigmoid(x: Any) -> Any:
    return _like(x, 1.0) / (_like(x, 1.0) + _exp(_like(x, 0.0) - x))


def _tanh(x: Any) -> Any:
    """An odd function; a short series near zero, where ``1 - 2 / (exp(2x) + 1)`` would cancel."""
    square = x * x
    series = x * (_like(x, 1.0) + square * (_like(x, -1 / 3) + square * _like(x, 2 / 15)))
    far = _like(x, 1.0) - _like(x, 2.0) / (_exp(x + x) + _like(x, 1.0))
    return tirx.Select(tirx.abs(x) < _like(x, 0.1), series, far)


def _erf(x: Any) -> Any:
    size, square = tirx.abs(x), x * x
    near = x * _horner(square, _ERF.near)
    t = _like(x, 1.0) / (_like(x, 1.0) + _like(x, _ERF.scale) * size)
    value = _like(x, 1.0) - _horner(t, _ERF.far) * t * _exp(_like(x, 0.0) - square)
    far = tirx.Select(x < _like(x, 0.0), _like(x, 0.0) - value, value)
    return tirx.Select(size < _like(x, 0.3), near, far)


def _horner(x: Any, coefficients: tuple[float, ...]) -> Any:
    value = _like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + _like(x, coefficient)
    return value


def _lanes(x: Any) -> str:
    _, _, count = str(x.ty.dtype).partition("x")
    return f"x{count}" if count else ""


def _like(x: Any, value: float) -> Any:
    return _constant(value, str(x.ty.dtype))


def _constant(value: float, dtype: str) -> Any:
    return tirx.const(value, dtype)


def _install(name: str, make: Callable[[Any], Any]) -> None:
    """Registers a rule before TVM's; outside of `vector_math` it calls TVM's rule."""
    op = tvm.ir.Op.get(name)
    rules = [op.get_attr(attribute) for attribute in _RULES]
    before = next((rule for rule in rules if rule is not None), None)

    def rule(call: Any) -> Any:
        if _ACTIVE.get() and str(call.ty.dtype).startswith("float32"):
            return make(call.args[0])
        return call if before is None else before(call)

    # The level is above those of TVM's own rules for LLVM.
    tirx.register_intrin_lowering(name, "llvm", f=rule, level=120)


for _name, _make in {
    "tirx.exp": _exp,
    "tirx.sigmoid": _sigmoid,
    "tirx.tanh": _tanh,
    "tirx.erf": _erf,
}.items():
    _install(_name, _make)
