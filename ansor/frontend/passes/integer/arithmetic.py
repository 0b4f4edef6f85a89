"""`quantize` and `dequantize` as arithmetic on whole tensors, which fusion joins with anything."""

from __future__ import annotations

from typing import Any

import numpy as np

from ansor.frontend.passes.integer.bindings import Bindings
from ansor.frontend.passes.integer.movement import DEQUANTIZE, QUANTIZE
from ansor.frontend.passes.integer.parameters import (
    Parameter,
    is_known,
    is_zero,
    known,
    op,
    operand,
    parameter,
    shape_along,
)
from ansor.frontend.rewrite import Lookup, constant, op_name, static_shape

_EXACT = frozenset(("int8", "uint8", "int16", "uint16"))  # in float32


def in_arithmetic(call: Any, lookup: Lookup) -> Any:
    """A call of either operator as simple operators; constants are dequantised."""
    if op_name(call) == QUANTIZE:
        return _quantized(call, lookup)
    return _dequantized(call, lookup) if op_name(call) == DEQUANTIZE else call


def without_integers(call: Any, lookup: Lookup, graph: Bindings) -> Any:
    """A `dequantize` of a `quantize` in float32, if nothing else reads the integers.

    Args:
        graph: of the module that the call belongs to.
    """
    source = graph.value(call.args[0])
    if op_name(source) != QUANTIZE or str(call.ty.dtype) != "float32":
        return call
    if known(source.args[0], lookup) is not None:
        return call
    zeros = [known(each.args[2], lookup) for each in (source, call)]
    if any(zero is None or zero.size != 1 for zero in zeros) or zeros[0] != zeros[1]:
        return call
    step, zero = _parameters(source, "int32", lookup)
    scale, _ = _parameters(call, "int32", lookup)
    return _scaled(_centred(source, step, zero), scale, _rank(call))


def _parameters(call: Any, dtype: str, lookup: Lookup) -> list[Parameter]:
    """Scale, `float32`, and zero point, of a dtype."""
    rank = _rank(call)
    axis = int(call.attrs.axis) % max(rank, 1)
    sizes = [int(np.prod(static_shape(expr) or ())) for expr in call.args[1:]]
    return [
        parameter(expr, kind, shape_along(size, axis, rank), lookup)
        for expr, kind, size in zip(call.args[1:], ("float32", dtype), sizes, strict=True)
    ]


def _quantized(call: Any, lookup: Lookup) -> Any:
    """Rounded, ties to even, plus the zero point, within the range of the dtype."""
    dtype = str(call.ty.dtype)
    scale, zero = _parameters(call, "int32", lookup)
    values = known(call.args[0], lookup)
    if values is not None and is_known(scale) and is_known(zero):
        limits = np.iinfo(dtype)
        steps = np.rint(values.astype(np.float32) / scale) + zero
        return constant(np.clip(steps, limits.min, limits.max), dtype)
    steps = op.astype(_centred(call, scale, zero), "int32")
    moved = steps if is_zero(zero) else op.add(steps, operand(zero, _rank(call)))
    return op.astype(moved, dtype)


def _centred(call: Any, scale: Parameter, zero: Parameter) -> Any:
    """The integers of a `quantize` less their zero point, `float32`.

    Values are clipped before they are rounded, so that the processor rounds and converts at once.

    Args:
        scale: `float32`.
        zero: `int32`.
    """
    data = call.args[0] if _is_float32(call.args[0]) else op.astype(call.args[0], "float32")
    limits = np.iinfo(str(call.ty.dtype))
    low, high = (_less(limit, zero, _rank(call)) for limit in (limits.min, limits.max))
    divided = _divided(data, scale, _rank(call))
    return op.round(op.minimum(op.maximum(divided, low), high))


def _less(limit: int, zero: Parameter, rank: int) -> Any:
    """A limit of a dtype, less the zero point; `float32`."""
    if is_zero(zero):
        return constant(limit, "float32")
    if is_known(zero):
        return operand(np.asarray(limit - zero.astype(np.int64), np.float32), rank)
    return op.astype(op.subtract(constant(limit, "int32"), zero), "float32")


def _divided(data: Any, scale: Parameter, rank: int) -> Any:
    """A quotient, as in quantisers. A product with the reciprocal may round to another step."""
    return data if _is_one(scale) else op.divide(data, operand(scale, rank))


def _is_one(scale: Parameter) -> bool:
    return is_known(scale) and bool(np.all(scale == 1))


def _rank(call: Any) -> int:
    return len(static_shape(call) or ())


def _is_float32(expr: Any) -> bool:
    return str(expr.ty.dtype) == "float32"


def _scaled(data: Any, scale: Parameter, rank: int) -> Any:
    return data if _is_one(scale) else op.multiply(data, operand(scale, rank))


def _dequantized(call: Any, lookup: Lookup) -> Any:
    data, dtype = call.args[0], str(call.ty.dtype)
    exact = "float32" if str(data.ty.dtype) in _EXACT else "int32"
    scale, zero = _parameters(call, exact, lookup)
    values = known(data, lookup)
    if values is not None and is_known(scale) and is_known(zero):
        return constant((values.astype(exact) - zero).astype("float32") * scale, dtype)
    wide = op.astype(data, exact)
    centred = wide if is_zero(zero) else op.subtract(wide, operand(zero, _rank(call)))
    single = centred if exact == "float32" else op.astype(centred, "float32")
    real = _scaled(single, scale, _rank(call))
    return real if dtype == "float32" else op.astype(real, dtype)
