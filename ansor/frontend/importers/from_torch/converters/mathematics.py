"""Functions of one or two operands that Relax has no operator for, or an inexact one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import relax, te, tirx

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import dtype_of, is_float, shape_of
from ansor.frontend.importers.from_torch.converters.context import Context, number
from ansor.frontend.importers.from_torch.converters.elementwise import in_float, wide
from ansor.frontend.importers.from_torch.converters.registry import FUNCTIONS, converts
from ansor.frontend.importers.operators.inverse_erf import erfinv

op = relax.op


def pointwise(context: Context, function: Callable[..., Any], *operands: Any) -> Any:
    """`function` of scalars at every place; operands are in one dtype, the function's."""
    shape = context.shape
    given = [context.broadcast(operand, shape) for operand in operands]

    def define(*tensors: Any) -> Any:
        return te.compute(shape, lambda *at: function(*(t(*at) for t in tensors)), name="pointwise")

    name = str(context.node.target.__name__).split(".")[0].strip("_")
    return context.te(define, *given, name=name)


def in_wide(context: Context, function: Callable[..., Any], *operands: Any) -> Any:
    """`pointwise` in the result's dtype, or in float32 for a shorter one."""
    dtype = wide(context.dtype)
    given = [context.cast(operand, dtype) for operand in operands]
    return context.cast(pointwise(context, function, *given), context.dtype)


@converts("log2.default")
def log2(context: Context, x: Any) -> Any:
    """Logarithm to base 2."""
    return in_wide(context, tirx.log2, x)


@converts("log10.default")
def log10(context: Context, x: Any) -> Any:
    """Logarithm to base 10."""
    return in_wide(context, tirx.log10, x)


@converts("exp2.default")
def exp2(context: Context, x: Any) -> Any:
    """Power of two."""
    return in_wide(context, tirx.exp2, x)


@converts("log1p.default")
def log1p(context: Context, x: Any) -> Any:
    """`log(1 + x)`, accurate near zero: there `2 artanh(x / (2 + x))` as a series."""

    def function(value: Any) -> Any:
        dtype = value.ty.dtype
        one, two = tirx.const(1, dtype), tirx.const(2, dtype)
        ratio = value / (two + value)
        series = tirx.const(0, dtype)
        for k in range(20 if str(dtype) == "float64" else 8, -1, -1):
            series = series * ratio * ratio + tirx.const(1 / (2 * k + 1), dtype)
        small = tirx.abs(value) < tirx.const(0.5, dtype)
        return tirx.Select(small, two * ratio * series, tirx.log(one + value))

    return in_wide(context, function, x)


@converts("expm1.default")
def expm1(context: Context, x: Any) -> Any:
    """`exp(x) - 1`, accurate near zero: `2 sinh(x / 2) exp(x / 2)`, its series for small ones."""

    def function(value: Any) -> Any:
        dtype = value.ty.dtype
        series = tirx.const(0, dtype)
        for k in range(14 if str(dtype) == "float64" else 8, 0, -1):
            series = value / tirx.const(k, dtype) * (tirx.const(1, dtype) + series)
        small = tirx.abs(value) < tirx.const(0.5, dtype)
        return tirx.Select(small, series, tirx.exp(value) - tirx.const(1, dtype))

    return in_wide(context, function, x)


@converts("erfc.default", "special_erfc.default")
def erfc(context: Context, x: Any) -> Any:
    """`1 - erf(x)`."""
    one = number(1, wide(context.dtype))
    return in_float(context, lambda value: op.subtract(one, op.erf(value)), x)


@converts("atan2.default")
def atan2(context: Context, x: Any, other: Any) -> Any:
    """Angle of a point, `x` being its height."""
    return in_wide(context, tirx.atan2, x, other)


@converts("hypot.default")
def hypot(context: Context, x: Any, other: Any) -> Any:
    """Length of the hypotenuse."""
    return in_wide(context, tirx.hypot, x, other)


@converts("copysign.Tensor", "copysign.Scalar")
def copysign(context: Context, x: Any, other: Any) -> Any:
    """`x` with the sign of `other`."""
    return in_wide(context, tirx.copysign, x, other)


def _operands(context: Context, *operands: Any) -> list[Any]:
    return [context.cast(operand, context.dtype) for operand in operands]


def _fmod(x: Any, other: Any) -> Any:
    """Remainder of floats: `frem` of LLVM, which is the C library's `fmod`."""
    return tirx.Mod(x, other)


@converts("fmod.Tensor", "fmod.Scalar")
def fmod(context: Context, x: Any, other: Any) -> Any:
    """Remainder with the sign of `x`."""
    if is_float(context.dtype):
        return in_wide(context, _fmod, x, other)
    return pointwise(context, tirx.truncmod, *_operands(context, x, other))


@converts("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(context: Context, x: Any, other: Any) -> Any:
    """Remainder with the sign of `other`."""
    if is_float(context.dtype):
        return in_wide(context, _float_remainder, x, other)
    return pointwise(context, tirx.floormod, *_operands(context, x, other))


def _signs_differ(rest: Any, other: Any) -> Any:
    """Whether one is negative and the other is not; a rest of zero has any sign."""
    zero = tirx.const(0, rest.ty.dtype)
    return tirx.any(tirx.all(rest < zero, other > zero), tirx.all(rest > zero, other < zero))


def _float_remainder(x: Any, other: Any) -> Any:
    rest = _fmod(x, other)
    differ = _signs_differ(rest, other)
    return tirx.Select(differ, rest + other, rest)


@converts("div.Tensor_mode", "div.Scalar_mode")
def div_mode(context: Context, x: Any, other: Any, rounding_mode: Any) -> Any:
    """Division, rounded towards zero ("trunc") or downwards ("floor")."""
    if rounding_mode is None:
        return op.divide(*_operands(context, x, other))
    if is_float(context.dtype):
        function = _float_floor if rounding_mode == "floor" else _float_trunc
        return in_wide(context, function, x, other)
    integer = tirx.floordiv if rounding_mode == "floor" else tirx.truncdiv
    return pointwise(context, integer, *_operands(context, x, other))


@converts("floor_divide.default", "floor_divide.Scalar")
def floor_divide(context: Context, x: Any, other: Any) -> Any:
    """Division, rounded downwards."""
    return div_mode(context, x, other, "floor")


def _float_trunc(x: Any, other: Any) -> Any:
    return tirx.trunc(x / other)


def _float_floor(x: Any, other: Any) -> Any:
    """The exact quotient of `x` less its remainder, as in PyTorch."""
    zero, one = tirx.const(0, x.ty.dtype), tirx.const(1, x.ty.dtype)
    rest = _fmod(x, other)
    quotient = (x - rest) / other
    differ = _signs_differ(rest, other)
    quotient = tirx.Select(differ, quotient - one, quotient)
    floor = tirx.floor(quotient)
    up = quotient - floor > tirx.const(0.5, x.ty.dtype)
    return tirx.Select(other == zero, x / other, tirx.Select(up, floor + one, floor))


@converts("pow.Tensor_Scalar")
def pow_scalar(context: Context, x: Any, exponent: Any) -> Any:
    """`x ** exponent`."""
    if exponent == 2:
        given = context.cast(x, context.dtype)
        return op.multiply(given, given)
    if is_float(context.dtype):
        return in_float(context, op.power, x, exponent)
    return _integer_power(context, context.cast(x, context.dtype), exponent)


@converts("pow.Tensor_Tensor", "pow.Scalar")
def pow_tensor(context: Context, x: Any, exponent: Any) -> Any:
    """`x ** exponent`."""
    if not is_float(context.dtype):
        raise OperatorError("integer powers whose exponents are not known are not supported")
    return in_float(context, op.power, x, exponent)


def _integer_power(context: Context, base: Any, exponent: int) -> Any:
    """A power by repeated squaring; wraps around as in PyTorch."""
    if not isinstance(exponent, int) or exponent < 0:
        raise OperatorError(f"the power {exponent} of an integer is not supported")
    result = context.broadcast(number(1, context.dtype), shape_of(base))
    while exponent:
        if exponent % 2:
            result = context.emit(op.multiply(result, base))
        base, exponent = context.emit(op.multiply(base, base)), exponent // 2
    return result


@converts("round.decimals")
def round_decimals(context: Context, x: Any, decimals: int) -> Any:
    """Rounded to a number of decimals, exactly as PyTorch scales."""
    if not is_float(context.dtype):
        if decimals < 0:
            raise OperatorError("rounding integers to tens is not supported")
        return x
    scale = 10.0 ** abs(decimals)

    def function(value: Any) -> Any:
        factor = tirx.const(scale, value.ty.dtype)
        if decimals >= 0:
            return tirx.nearbyint(value * factor) / factor
        return tirx.nearbyint(value / factor) * factor

    return in_wide(context, function, x)


@converts("fmax.default")
def fmax(context: Context, x: Any, other: Any) -> Any:
    """The larger one; the other one where one is NaN."""
    return _unless_nan(context, op.maximum, x, other)


@converts("fmin.default")
def fmin(context: Context, x: Any, other: Any) -> Any:
    """The smaller one; the other one where one is NaN."""
    return _unless_nan(context, op.minimum, x, other)


def _unless_nan(context: Context, function: Callable[..., Any], x: Any, other: Any) -> Any:
    left, right = _operands(context, x, other)
    if not is_float(context.dtype):
        return function(left, right)
    first = context.emit(op.where(op.isnan(left), right, left))
    second = context.emit(op.where(op.isnan(right), left, right))
    return function(first, second)


@converts("signbit.default")
def signbit(context: Context, x: Any) -> Any:
    """Whether the sign is negative, of a zero too."""
    dtype = dtype_of(x)
    if not is_float(dtype):
        return op.less(context.cast(x, "int64"), number(0, "int64"))
    given, zero = context.cast(x, wide(dtype)), number(0, wide(dtype))
    one = context.broadcast(number(1, wide(dtype)), context.shape)
    return op.less(pointwise(context, tirx.copysign, one, given), zero)


def _shift(left: bool) -> Callable[..., Any]:
    function = op.left_shift if left else op.right_shift

    def convert(context: Context, x: Any, other: Any) -> Any:
        return function(*_operands(context, x, other))

    return convert


for _overload in ("Tensor", "Scalar", "Tensor_Scalar"):
    for _name in ("bitwise_left_shift", "__lshift__"):
        FUNCTIONS[f"{_name}.{_overload}"] = _shift(True)
    for _name in ("bitwise_right_shift", "__rshift__"):
        FUNCTIONS[f"{_name}.{_overload}"] = _shift(False)


@converts("erfinv.default")
def inverse_erf(context: Context, x: Any) -> Any:
    """Inverse of `erf`."""
    return in_wide(context, erfinv, x)
