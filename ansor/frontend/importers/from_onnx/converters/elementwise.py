"""Operators that compute each element from those at its place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tvm import relax, te, tirx

from ansor.frontend.importers.conversion import HALF, dtype_of, is_float, shape_of
from ansor.frontend.importers.from_onnx.converters.context import (
    Context,
    Converter,
    dtype_from_onnx,
)
from ansor.frontend.rewrite import constant

op = relax.op


def _unary(function: Callable[[Any], Any], wide: bool = False) -> Converter:
    """`wide` computes 16-bit numbers in float32, for which there are no accurate functions."""

    def convert(c: Context) -> Any:
        x = c.operand(0)
        if wide and dtype_of(x) in HALF:
            return c.cast(c.emit(function(c.cast(x, "float32"))), dtype_of(x))
        return function(x)

    return convert


def _binary(function: Callable[[Any, Any], Any]) -> Converter:
    return lambda c: function(c.operand(0), c.operand(1))


def _mapped(c: Context, scalar: Callable[..., Any], *operands: Any, name: str) -> Any:
    """A function of scalars on operands that are broadcast to one shape."""
    shape = np.broadcast_shapes(*map(shape_of, operands))
    spread = [c.broadcast(value, shape) for value in operands]

    def define(*tensors: Any) -> Any:
        return te.compute(shape, lambda *at: scalar(*(t(*at) for t in tensors)), name=name)

    return c.te(define, *spread, name=name)


def identity(c: Context) -> Any:
    """The operand itself."""
    return c.operand(0)


def rounded(c: Context) -> Any:
    """Rounding to the nearest integer, ties to the even one."""
    return _mapped(c, tirx.nearbyint, c.operand(0), name="round")


def is_inf(c: Context) -> Any:
    """Infinities, of one sign if the other one is switched off."""
    x = c.operand(0)
    signs = [
        np.inf if c.attr("detect_positive", 1) else None,
        -np.inf if c.attr("detect_negative", 1) else None,
    ]
    found = [c.emit(op.equal(x, c.number(s, x))) for s in signs if s is not None]
    if not found:
        return constant(np.zeros(shape_of(x), bool))
    return functools.reduce(op.logical_or, found)


def is_nan(c: Context) -> Any:
    """Whether elements are NaN."""
    x = c.operand(0)
    x = c.cast(x, _wide(dtype_of(x)))
    # A comparison of a number with itself is taken for true by the simplifier.
    bits, largest = ("int64", 0x7FF << 52) if dtype_of(x) == "float64" else ("int32", 0xFF << 23)

    def scalar(value: Any) -> Any:
        magnitude = tirx.reinterpret(bits, value) & tirx.const(np.iinfo(bits).max, bits)
        return magnitude > tirx.const(largest, bits)

    return _mapped(c, scalar, x, name="isnan")


def sign(c: Context) -> Any:
    """-1, 0 or 1."""
    x = c.operand(0)
    zero, one = c.number(0, x), c.number(1, x)
    positive = c.emit(op.where(op.greater(x, zero), one, zero))
    if dtype_of(x).startswith("uint"):
        return positive
    negative = c.number(-1, x)
    return op.where(op.less(x, zero), negative, c.emit(positive))


def divide(c: Context) -> Any:
    """Quotients; those of integers are truncated."""
    a, b = c.operand(0), c.operand(1)
    if is_float(dtype_of(a)):
        return op.divide(a, b)
    return _mapped(c, tirx.truncdiv, a, b, name="divide")


def modulo(c: Context) -> Any:
    """The rest with the sign of the dividend (`fmod`) or of the divisor."""
    a, b = c.operand(0), c.operand(1)
    if is_float(dtype_of(a)):
        return _float_rest(c, a, b)
    return _mapped(c, tirx.truncmod if c.attr("fmod", 0) else tirx.floormod, a, b, name="mod")


def _float_rest(c: Context, a: Any, b: Any) -> Any:
    dtype = dtype_of(a)
    wide = "float32" if dtype in HALF else dtype
    truncated = bool(c.attr("fmod", 0))

    def scalar(x: Any, y: Any) -> Any:
        rest = tirx.call_pure_extern(wide, "fmodf" if wide == "float32" else "fmod", x, y)
        return rest if truncated else _with_sign_of_divisor(rest, y)

    return c.cast(_mapped(c, scalar, c.cast(a, wide), c.cast(b, wide), name="fmod"), dtype)


def _with_sign_of_divisor(rest: Any, divisor: Any) -> Any:
    zero = tirx.const(0, divisor.ty.dtype)
    differ = tirx.any(tirx.all(rest < zero, divisor > zero), tirx.all(rest > zero, divisor < zero))
    moved = tirx.Select(differ, rest + divisor, rest)
    return tirx.Select(rest == zero, tirx.copysign(zero, divisor), moved)


def power(c: Context) -> Any:
    """Powers in the dtype of the base; those of integers are exact up to 2^53."""
    a, b = c.operand(0), c.operand(1)
    dtype = dtype_of(a)
    if c.is_known(1) and np.all(c.known(1) == 2):
        return c.emit(op.multiply(a, a)) if shape_of(b) == () else _spread_square(c, a, b)
    if is_float(dtype_of(a)) and dtype == dtype_of(b) and dtype not in HALF:
        return op.power(a, b)
    wide = "float32" if is_float(dtype_of(a)) and dtype != "float64" else "float64"
    found = c.emit(op.power(c.cast(a, wide), c.cast(b, wide)))
    return c.cast(found, dtype)


def _spread_square(c: Context, a: Any, b: Any) -> Any:
    shape = np.broadcast_shapes(shape_of(a), shape_of(b))
    return c.broadcast(c.emit(op.multiply(a, a)), shape)


def shift(c: Context) -> Any:
    """Bits shifted left or right; by less than nothing or more than all, none or signs are left."""
    a, b = c.operand(0), c.operand(1)
    dtype = dtype_of(a)
    last = tirx.const(8 * np.dtype(dtype).itemsize - 1, dtype)
    left, zero = c.attr("direction") == "LEFT", tirx.const(0, dtype)

    def scalar(x: Any, y: Any) -> Any:
        inside = tirx.all(y >= zero, y <= last)
        within = tirx.Select(inside, y, last)
        if left:
            return tirx.Select(inside, x << within, zero)
        rest = x >> within
        return rest if not dtype.startswith("u") else tirx.Select(inside, rest, zero)

    return _mapped(c, scalar, a, b, name="shift")


def _bitwise(function: Callable[..., Any], name: str) -> Converter:
    return lambda c: _mapped(c, function, *c.operands, name=name)


def _folded(function: Callable[[Any, Any], Any]) -> Converter:
    def convert(c: Context) -> Any:
        return functools.reduce(lambda a, b: c.emit(function(a, b)), c.operands)

    return convert


def _extreme(function: Callable[[Any, Any], Any]) -> Converter:
    def convert(c: Context) -> Any:
        dtype = dtype_of(c.operand(0))
        if dtype not in HALF:
            return _folded(function)(c)
        wide = [c.cast(value, "float32") for value in c.operands]
        found = functools.reduce(lambda a, b: c.emit(function(a, b)), wide)
        return c.cast(found, dtype)

    return convert


def mean(c: Context) -> Any:
    """The mean of several operands."""
    total = _folded(op.add)(c)
    return op.divide(total, c.number(len(c.values), total))


def where(c: Context) -> Any:
    """Elements of the second operand where the first is true, else of the third."""
    return op.where(*c.operands)


def cast(c: Context) -> Any:
    """The operand in another dtype: numbers are truncated, and nonzero elements are true."""
    target = c.attr("to")
    dtype = str(target).lower() if isinstance(target, str) else dtype_from_onnx(int(target))
    return _converted(c, {"float": "float32", "double": "float64"}.get(dtype, dtype))


def cast_like(c: Context) -> Any:
    """The first operand in the dtype of the second."""
    return _converted(c, dtype_of(c.operand(1)))


def _converted(c: Context, dtype: str) -> Any:
    x = c.operand(0)
    if dtype == "bool" and is_float(dtype_of(x)):
        return op.not_equal(
            c.cast(x, "float32" if dtype_of(x) in HALF else dtype_of(x)),
            constant(np.zeros((), np.float32), _wide(dtype_of(x))),
        )
    if dtype_of(x) in HALF and dtype in HALF and dtype != dtype_of(x):
        return c.cast(c.cast(x, "float32"), dtype)
    return c.cast(x, dtype)


def _wide(dtype: str) -> str:
    return "float32" if dtype in HALF else dtype


def logical_not(c: Context) -> Any:
    """Truth values inverted."""
    return op.logical_not(c.operand(0))


def clip(c: Context) -> Any:
    """Elements within bounds; a bound that is NaN or infinite bounds nothing."""
    result = c.operand(0)
    for place, name, function in ((1, "min", op.maximum), (2, "max", op.minimum)):
        if c.is_known(place) or (not c.has(place) and c.attr(name) is not None):
            bound = c.known(place) if c.has(place) else np.float32(c.attr(name))
            free = np.isnan(bound) or bound == (-np.inf if name == "min" else np.inf)
            if not free:
                result = c.emit(function(result, c.number(bound.reshape(()), result)))
        elif c.has(place):
            result = c.emit(function(result, c.reshape(c.operand(place), ())))
    return result


def swapped_xor(c: Context) -> Any:
    """Truth of exactly one."""
    return op.not_equal(*(c.cast(v, "int8") for v in c.operands))


def _compared(function: Callable[[Any, Any], Any]) -> Converter:
    def convert(c: Context) -> Any:
        a, b = c.operands
        if dtype_of(a) == "bool":
            a, b = c.cast(a, "int8"), c.cast(b, "int8")
        return function(a, b)

    return convert


def reciprocal(c: Context) -> Any:
    """Reciprocals of the elements."""
    return op.divide(c.number(1, c.operand(0)), c.operand(0))


_FLOAT_FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "Exp": op.exp, "Log": op.log, "Sqrt": op.sqrt, "Sin": op.sin, "Cos": op.cos, "Tan": op.tan,
    "Asin": op.asin, "Acos": op.acos, "Atan": op.atan, "Sinh": op.sinh, "Cosh": op.cosh,
    "Tanh": op.tanh, "Asinh": op.asinh, "Acosh": op.acosh, "Atanh": op.atanh, "Erf": op.erf,
    "Sigmoid": op.sigmoid,
}  # fmt: skip

CONVERTERS: Mapping[str, Converter] = {
    **{name: _unary(function, wide=True) for name, function in _FLOAT_FUNCTIONS.items()},
    "Abs": _unary(op.abs),
    "Neg": _unary(op.negative),
    "Ceil": _unary(op.ceil),
    "Floor": _unary(op.floor),
    "Round": rounded,
    "Sign": sign,
    "Reciprocal": reciprocal,
    "Identity": identity,
    "IsInf": is_inf,
    "IsNaN": is_nan,
    "Not": logical_not,
    "Add": _binary(op.add),
    "Sub": _binary(op.subtract),
    "Mul": _binary(op.multiply),
    "Div": divide,
    "Mod": modulo,
    "Pow": power,
    "BitShift": shift,
    "BitwiseAnd": _bitwise(lambda a, b: a & b, "bitwise_and"),
    "BitwiseOr": _bitwise(lambda a, b: a | b, "bitwise_or"),
    "BitwiseXor": _bitwise(lambda a, b: a ^ b, "bitwise_xor"),
    "BitwiseNot": _bitwise(lambda a: ~a, "bitwise_not"),
    "And": _binary(op.logical_and),
    "Or": _binary(op.logical_or),
    "Xor": swapped_xor,
    "Equal": _compared(op.equal),
    "Greater": _binary(op.greater),
    "GreaterOrEqual": _binary(op.greater_equal),
    "Less": _binary(op.less),
    "LessOrEqual": _binary(op.less_equal),
    "Max": _extreme(op.maximum),
    "Min": _extreme(op.minimum),
    "Sum": _folded(op.add),
    "Mean": mean,
    "Where": where,
    "Cast": cast,
    "CastLike": cast_like,
    "Clip": clip,
}
