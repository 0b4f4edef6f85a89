"""Sorting: stable, NaN after all numbers, for every dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax, te, tirx

from ansor.frontend.importers.conversion import shape_of

op = relax.op

_BITS = {"float16": "int16", "bfloat16": "int16", "float32": "int32", "float64": "int64"}
_NARROW = ("bool", "int8", "uint8", "int16", "uint16")  # TVM's runtime does not sort them


def argsort(
    bb: relax.BlockBuilder, data: relax.Expr, axis: int, descending: bool = False
) -> relax.Expr:
    """`int64` places of the elements in order along an axis; equal ones keep theirs."""
    keys = sort_keys(bb, data)
    return bb.emit(op.argsort(keys, axis, descending, "int64"))


def sort(
    bb: relax.BlockBuilder, data: relax.Expr, axis: int, descending: bool = False
) -> tuple[relax.Expr, relax.Expr]:
    """The elements in order along an axis, and their `int64` places."""
    places = argsort(bb, data, axis, descending)
    return along(bb, data, places, axis), places


def topk(
    bb: relax.BlockBuilder,
    data: relax.Expr,
    k: int,
    axis: int,
    largest: bool = True,
    is_sorted: bool = True,
) -> tuple[relax.Expr, relax.Expr]:
    """The first `k` elements in order along an axis, and their `int64` places.

    They are in order, whatever `is_sorted` says: any order is allowed where it is false. Of equal
    elements the first are taken.
    """
    places = argsort(bb, data, axis, largest)
    first = bb.emit(op.strided_slice(places, [axis], [0], [k]))
    return along(bb, data, first, axis), first


def along(bb: relax.BlockBuilder, data: relax.Expr, places: relax.Expr, axis: int) -> relax.Expr:
    """The elements at places along an axis; all other places are the result's own."""

    def define(x: Any, index: Any) -> Any:
        def element(*at: Any) -> Any:
            return x(*at[:axis], index(*at), *at[axis + 1 :])

        return te.compute(index.shape, element, name="along")

    return bb.emit_te(define, data, places, primfunc_name_hint="along")


def sort_keys(bb: relax.BlockBuilder, data: relax.Expr) -> relax.Expr:
    """Signed integers that are in the order of the elements, NaN after all numbers.

    The bits of a float are in order if it is positive, and in the reverse order if it is not.
    Both zeros are equal, and so are all NaN.

    Raises:
        OperatorError: the shape is not static.
    """
    shape, dtype = shape_of(data), str(data.ty.dtype)
    if dtype in _NARROW:
        return bb.emit(op.astype(data, "int32"))
    if dtype == "uint32":
        return bb.emit(op.astype(data, "int64"))
    if dtype not in (*_BITS, "uint64"):
        return data
    if dtype in ("float16", "bfloat16"):
        data = bb.emit(op.astype(data, "float32"))

    def define(x: Any) -> Any:
        return te.compute(shape, lambda *at: _key(x(*at), str(x.dtype)), name="keys")

    return bb.emit_te(define, data, primfunc_name_hint="keys")


def _key(value: Any, dtype: str) -> Any:
    if dtype == "uint64":
        half = tirx.const(np.iinfo(np.int64).min, "int64")
        return tirx.reinterpret("int64", value) ^ half
    bits = _BITS[dtype]
    zero, largest = tirx.const(0, dtype), tirx.const(int(np.iinfo(bits).max), bits)
    plain = tirx.reinterpret(bits, tirx.Select(value == zero, zero, value))
    ordered = tirx.Select(plain < 0, plain ^ largest, plain)
    return tirx.Select(tirx.isnan(value), largest, ordered)
