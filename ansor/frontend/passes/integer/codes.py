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
# Difference between the two dtypes of 8 bits: half of the number of integers.
_STEPS = {"uint8": np.asarray(128, np.int32), "int8": np.asarray(-128, np.int32)}
_WIDE = "int16"  # for the values in between


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
    """The 8-bit integers of a dequantised float32 or int32 tensor; None for other tensors."""
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
    """The codes of `astype(data, int32)`, with or without a subtracted zero point."""
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
    """The codes of `int32` values whose range has 8 bits."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    shift = 0 if low >= _LIMITS.min and high <= _LIMITS.max else low - int(_LIMITS.min)
    if high - shift > _LIMITS.max:
        return None
    return Codes(constant(values - shift, "int8"), np.asarray(-shift, np.int32), None)


def signed(codes: Codes, lookup: Lookup) -> Codes:
    """The same tensor in `int8`, with a zero point of 0 if its values are known and fit."""
    values = known(codes.data, lookup)
    if values is not None and is_known(codes.zero):
        centred = values.astype(np.int32) - codes.zero
        if centred.min() >= _LIMITS.min and centred.max() <= _LIMITS.max:
            return Codes(constant(centred, "int8"), np.zeros((), np.int32), codes.scale)
    return of_dtype(codes, "int8", lookup)


def of_dtype(codes: Codes, dtype: str, lookup: Lookup) -> Codes:
    """The same tensor of `uint8` or `int8`: integers and zero point differ by 128."""
    if str(codes.data.ty.dtype) == dtype:
        return codes
    step = _STEPS[dtype]
    zero = codes.zero + step if is_known(codes.zero) else op.add(codes.zero, constant(step))
    return Codes(moved(codes.data, dtype, lookup), zero, codes.scale)


def moved(data: Any, dtype: str, lookup: Lookup) -> Any:
    """8-bit integers in the other dtype of `uint8` and `int8`, at the same distance from the
    least."""
    values = known(data, lookup)
    if values is not None:
        return constant(values.astype(np.int32) + _STEPS[dtype], dtype)
    source = moved_back(data, dtype, lookup)
    if source is not None:
        return source
    wide = op.add(op.astype(data, _WIDE), constant(_STEPS[dtype], _WIDE))
    return op.astype(wide, dtype)


def moved_back(data: Any, dtype: str, lookup: Lookup) -> Any | None:
    """The original integers of data from `moved`, if the data come from it."""
    cast = lookup(data)
    if op_name(cast) != "relax.astype":
        return None
    added = lookup(cast.args[0])
    if op_name(added) != "relax.add" or str(added.ty.dtype) != _WIDE:
        return None
    wide, step = lookup(added.args[0]), known(added.args[1], lookup)
    if op_name(wide) != "relax.astype" or str(wide.args[0].ty.dtype) != dtype:
        return None
    is_back = step is not None and np.array_equal(step, -_STEPS[dtype])
    return wide.args[0] if is_back else None
