"""Element by element: arithmetic, comparisons, bits, roundings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import relax

from ansor.frontend.importers.conversion import HALF, dtype_of, is_float
from ansor.frontend.importers.from_torch.converters.context import Context, differ, number
from ansor.frontend.importers.from_torch.converters.registry import FUNCTIONS, converts

op = relax.op

# Functions of one operand that compute in the result's dtype, or in float32 for a shorter one.
FLOATING: dict[str, Callable[[Any], Any]] = {
    "acos": op.acos,
    "acosh": op.acosh,
    "asin": op.asin,
    "asinh": op.asinh,
    "atan": op.atan,
    "atanh": op.atanh,
    "cos": op.cos,
    "cosh": op.cosh,
    "erf": op.erf,
    "exp": op.exp,
    "log": op.log,
    "rsqrt": op.rsqrt,
    "sigmoid": op.sigmoid,
    "sin": op.sin,
    "sinh": op.sinh,
    "sqrt": op.sqrt,
    "tan": op.tan,
    "tanh": op.tanh,
}
# Roundings are exact in any dtype, and do not change integers.
ROUNDINGS: dict[str, Callable[[Any], Any]] = {
    "ceil": op.ceil,
    "floor": op.floor,
    "trunc": op.trunc,
    "round": op.round,
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": op.equal,
    "ne": differ,
    "ge": op.greater_equal,
    "gt": op.greater,
    "le": op.less_equal,
    "lt": op.less,
}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "mul": op.multiply,
    "maximum": op.maximum,
    "minimum": op.minimum,
}
BITS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "bitwise_and": (op.bitwise_and, op.logical_and),
    "bitwise_or": (op.bitwise_or, op.logical_or),
    "bitwise_xor": (op.bitwise_xor, op.logical_xor),
}


def wide(dtype: str) -> str:
    """The dtype that PyTorch computes in: float32 for shorter ones."""
    return "float32" if dtype in HALF else dtype


def in_float(context: Context, function: Callable[..., Any], *operands: Any) -> Any:
    """`function` of operands in the result's dtype, computed in float32 for a shorter one."""
    dtype = wide(context.dtype)
    given = [context.cast(operand, dtype) for operand in operands]
    return context.cast(context.emit(function(*given)), context.dtype)


def _floating(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda context, x: in_float(context, function, x)


def _rounding(function: Callable[[Any], Any]) -> Callable[..., Any]:
    def convert(context: Context, x: Any) -> Any:
        return function(x) if is_float(dtype_of(x)) else x

    return convert


def _comparison(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def convert(context: Context, x: Any, other: Any) -> Any:
        dtype = context.common_dtype()
        dtype = "uint8" if dtype == "bool" else dtype
        return function(context.cast(x, dtype), context.cast(other, dtype))

    return convert


def _arithmetic(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def convert(context: Context, x: Any, other: Any) -> Any:
        return through_bytes(context, function, x, other)

    return convert


def through_bytes(context: Context, function: Callable[..., Any], *operands: Any) -> Any:
    """`function` in the result's dtype; truth values are bytes meanwhile."""
    dtype = "uint8" if context.dtype == "bool" else context.dtype
    given = [context.cast(context.cast(o, context.dtype), dtype) for o in operands]
    return context.cast(context.emit(function(*given)), context.dtype)


def _bits(function: Callable[[Any, Any], Any], logical: Callable[[Any, Any], Any]) -> Any:
    def convert(context: Context, x: Any, other: Any) -> Any:
        given = [context.cast(operand, context.dtype) for operand in (x, other)]
        return (logical if context.dtype == "bool" else function)(*given)

    return convert


def _logical(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def convert(context: Context, x: Any, other: Any) -> Any:
        return function(context.cast(x, "bool"), context.cast(other, "bool"))

    return convert


for _name, _function in FLOATING.items():
    FUNCTIONS[f"{_name}.default"] = _floating(_function)
for _name, _function in ROUNDINGS.items():
    FUNCTIONS[f"{_name}.default"] = _rounding(_function)
for _name, _binary in COMPARISONS.items():
    for _overload in ("Tensor", "Scalar"):
        FUNCTIONS[f"{_name}.{_overload}"] = _comparison(_binary)
for _name, _binary in ARITHMETIC.items():
    for _overload in ("Tensor", "Scalar", "default"):
        FUNCTIONS[f"{_name}.{_overload}"] = _arithmetic(_binary)
for _name, _pair in BITS.items():
    for _overload in ("Tensor", "Scalar", "Scalar_Tensor"):
        FUNCTIONS[f"{_name}.{_overload}"] = _bits(*_pair)
FUNCTIONS["logical_and.default"] = _logical(op.logical_and)
FUNCTIONS["logical_or.default"] = _logical(op.logical_or)
FUNCTIONS["logical_xor.default"] = _logical(op.logical_xor)


@converts("logical_not.default")
def logical_not(context: Context, x: Any) -> Any:
    """Whether an element is zero."""
    return op.logical_not(context.cast(x, "bool"))


@converts("bitwise_not.default")
def bitwise_not(context: Context, x: Any) -> Any:
    """Inverted bits; for truth values, the other one."""
    return op.logical_not(x) if context.dtype == "bool" else op.bitwise_not(x)


@converts("add.Tensor", "add.Scalar")
def add(context: Context, x: Any, other: Any, alpha: Any) -> Any:
    """`x + alpha * other`."""
    return through_bytes(context, op.add, x, scaled(context, other, alpha))


@converts("sub.Tensor", "sub.Scalar")
def sub(context: Context, x: Any, other: Any, alpha: Any) -> Any:
    """`x - alpha * other`."""
    return through_bytes(context, op.subtract, x, scaled(context, other, alpha))


@converts("rsub.Tensor", "rsub.Scalar")
def rsub(context: Context, x: Any, other: Any, alpha: Any) -> Any:
    """`other - alpha * x`."""
    return through_bytes(context, op.subtract, other, scaled(context, x, alpha))


def scaled(context: Context, value: Any, alpha: Any) -> Any:
    """`alpha * value` in the result's dtype."""
    if alpha == 1:
        return value
    if not isinstance(value, relax.Expr):
        return value * alpha
    given = context.cast(value, context.dtype)
    return context.emit(op.multiply(given, context.cast(alpha, context.dtype)))


@converts("div.Tensor", "div.Scalar")
def div(context: Context, x: Any, other: Any) -> Any:
    """True division."""
    return op.divide(context.cast(x, context.dtype), context.cast(other, context.dtype))


@converts("neg.default")
def neg(context: Context, x: Any) -> Any:
    """`-x`."""
    return op.negative(x)


@converts("abs.default")
def absolute(context: Context, x: Any) -> Any:
    """`|x|`; truth values and unsigned integers do not change."""
    return x if context.dtype == "bool" or context.dtype.startswith("uint") else op.abs(x)


@converts("sign.default")
def sign(context: Context, x: Any) -> Any:
    """-1, 0 or 1; 0 for NaN, as in PyTorch."""
    dtype = "uint8" if context.dtype == "bool" else context.dtype
    given, zero = context.cast(x, dtype), number(0, dtype)
    above = context.cast(context.emit(op.greater(given, zero)), dtype)
    below = context.cast(context.emit(op.less(given, zero)), dtype)
    return context.cast(context.emit(op.subtract(above, below)), context.dtype)


@converts("reciprocal.default")
def reciprocal(context: Context, x: Any) -> Any:
    """`1 / x`."""
    return op.divide(number(1, context.dtype), context.cast(x, context.dtype))


@converts("square.default")
def square(context: Context, x: Any) -> Any:
    """`x * x`."""
    return op.multiply(x, x)


@converts("where.self")
def where(context: Context, condition: Any, x: Any, other: Any) -> Any:
    """`x` where the condition holds, else `other`."""
    given = [context.cast(operand, context.dtype) for operand in (x, other)]
    return op.where(context.cast(condition, "bool"), *given)


@converts("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(context: Context, x: Any, mask: Any, value: Any) -> Any:
    """`value` where the mask holds, else `x`."""
    return op.where(mask, context.cast(value, context.dtype), x)


@converts("clamp.default", "clamp.Tensor")
def clamp(context: Context, x: Any, min: Any, max: Any) -> Any:
    """`x` between bounds, either of which may be missing."""
    result = context.cast(x, context.dtype)
    if min is not None:
        result = context.emit(op.maximum(result, context.cast(min, context.dtype)))
    if max is not None:
        result = context.emit(op.minimum(result, context.cast(max, context.dtype)))
    return result


@converts("clamp_min.default", "clamp_min.Tensor")
def clamp_min(context: Context, x: Any, min: Any) -> Any:
    """`x` from a bound upwards."""
    return clamp(context, x, min, None)


@converts("clamp_max.default", "clamp_max.Tensor")
def clamp_max(context: Context, x: Any, max: Any) -> Any:
    """`x` up to a bound."""
    return clamp(context, x, None, max)


@converts("isnan.default")
def isnan(context: Context, x: Any) -> Any:
    """Whether an element is NaN; no integer is."""
    return op.isnan(x) if is_float(dtype_of(x)) else op.zeros(list(context.shape), "bool")


@converts("isinf.default")
def isinf(context: Context, x: Any) -> Any:
    """Whether an element is infinite; no integer is."""
    dtype = dtype_of(x)
    if not is_float(dtype):
        return op.zeros(list(context.shape), "bool")
    return op.equal(op.abs(x), number(float("inf"), dtype))


@converts(
    "_to_copy.default", "to.dtype", "clone.default", "alias.default", "lift_fresh_copy.default"
)
@converts("detach.default", "contiguous.default", "view.dtype_same", "_conj.default")
def copied(context: Context, x: Any) -> Any:
    """The same values, in the result's dtype."""
    return converted(context, x)


def converted(context: Context, x: Any) -> Any:
    """Values in the result's dtype, as PyTorch converts them: towards zero, then modulo."""
    source, target = dtype_of(x), context.dtype
    if is_float(source) and target in ("uint8", "int8", "int16", "uint16"):
        x = context.cast(x, "int32")
    return context.cast(x, target)


@converts("copy.default")
def copy(context: Context, x: Any, src: Any) -> Any:
    """`src` in the shape and dtype of `x`."""
    return context.broadcast(converted(context, src), context.shape)
