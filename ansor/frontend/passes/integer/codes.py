"""Operands of products: 8-bit integers and the numbers that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ansor.frontend.passes.integer.parameters import (
    Array,
    Parameter,
    is_known,
    known,
    op,
    parameter,
    shape_along,
)
from ansor.frontend.rewrite import Lookup, constant, op_name, static_shape

EIGHT_BITS = frozenset(("int8", "uint8"))
_LIMITS = np.iinfo(np.int8)
_HALF = 128  # half of the values of 8 bits: what lies between uint8 and int8


@dataclass(frozen=True, eq=False)
class Codes:
    """A tensor `(data - zero) * scale`.

    Attributes:
        data: expression, `uint8` or `int8`.
        zero: `int32`, broadcasts against the data.
        scale: `float32`, broadcasts against the data; None if the tensor is `int32`.
    """

    data: Any
    zero: Parameter
    scale: Parameter | None


def codes_of(expr: Any, lookup: Lookup) -> Codes | None:
    """The 8-bit integers that a float32 or int32 tensor is made of; None if it is not."""
    value = lookup(expr)
    if op_name(value) == "relax.dequantize":
        return _dequantized(value, lookup)
    if str(value.ty.dtype) != "int32":
        return None
    values = known(value, lookup)
    return _centred(value, lookup) if values is None else _constant(values)


def _dequantized(call: Any, lookup: Lookup) -> Codes | None:
    data, scale, zero = call.args
    shape = static_shape(data)
    if shape is None or str(data.ty.dtype) not in EIGHT_BITS or str(call.ty.dtype) != "float32":
        return None
    axis = int(call.attrs.axis)
    return Codes(
        data,
        _along(zero, "int32", axis, shape, lookup),
        _along(scale, "float32", axis, shape, lookup),
    )


def _along(expr: Any, dtype: str, axis: int, shape: tuple[int, ...], lookup: Lookup) -> Parameter:
    size = int(np.prod(static_shape(expr) or ()))
    rank = len(shape)
    return parameter(expr, dtype, shape_along(size, axis % max(rank, 1), rank), lookup)


def _centred(value: Any, lookup: Lookup) -> Codes | None:
    """Of `astype(data, int32)`, or of that less a zero point."""
    zero: Parameter = np.zeros((), np.int32)
    if op_name(value) == "relax.subtract":
        shape = static_shape(value.args[1])
        if shape is None:
            return None
        zero = parameter(value.args[1], "int32", shape, lookup)
        value = lookup(value.args[0])
    if op_name(value) != "relax.astype" or str(value.args[0].ty.dtype) not in EIGHT_BITS:
        return None
    return Codes(value.args[0], zero, None)


def _constant(values: Array) -> Codes | None:
    """Of `int32` values whose range has 8 bits."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    shift = 0 if low >= _LIMITS.min and high <= _LIMITS.max else low - int(_LIMITS.min)
    if high - shift > _LIMITS.max:
        return None
    return Codes(constant(values - shift, "int8"), np.asarray(-shift, np.int32), None)


def signed(codes: Codes, lookup: Lookup) -> Codes:
    """The same tensor of `int8`, with a zero point of 0 where its values are known and fit."""
    values = known(codes.data, lookup)
    if values is not None and is_known(codes.zero):
        centred = values.astype(np.int32) - codes.zero
        if centred.min() >= _LIMITS.min and centred.max() <= _LIMITS.max:
            return Codes(constant(centred, "int8"), np.zeros((), np.int32), codes.scale)
    if str(codes.data.ty.dtype) == "int8":
        return codes
    if values is not None:
        data = constant(values.astype(np.int32) - _HALF, "int8")
    else:
        moved = op.subtract(op.astype(codes.data, "int16"), constant(_HALF, "int16"))
        data = op.astype(moved, "int8")
    half = np.asarray(-_HALF, np.int32)
    zero = codes.zero + half if is_known(codes.zero) else op.add(codes.zero, constant(half))
    return Codes(data, zero, codes.scale)
