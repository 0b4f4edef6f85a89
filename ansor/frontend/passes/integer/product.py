"""Products of matrices of 8-bit integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ansor.frontend.passes.integer.codes import Codes, codes_of, of_dtype, signed
from ansor.frontend.passes.integer.epilogue import with_epilogue
from ansor.frontend.passes.integer.parameters import (
    Array,
    Parameter,
    expanded,
    is_known,
    is_zero,
    known,
    op,
    times,
)
from ansor.frontend.rewrite import Lookup, static_shape

NAME = "relax.matmul"
_ROWS, _COLUMNS = -2, -1


def integer_product(
    call: Any, bias: Array | None, activations: str | None, lookup: Lookup
) -> Any | None:
    """A product of quantised matrices, and a bias along its columns, in integers.

    The left matrix has the dtype `activations`, or its own.

    None if an operand has no 8-bit integers, or if its parameters vary along other axes than the
    rows of the left or the columns of the right matrix.
    """
    left, right = (codes_of(arg, lookup) for arg in call.args)
    if left is None or right is None or (left.scale is None) != (right.scale is None):
        return None
    shapes = [static_shape(codes.data) or () for codes in (left, right)]
    if min(map(len, shapes)) < 2 or not (
        _varies_only(left, _ROWS) and _varies_only(right, _COLUMNS)
    ):
        return None
    right = signed(right, lookup)
    left = of_dtype(left, activations or str(left.data.ty.dtype), lookup)
    total = op.matmul(left.data, right.data, out_dtype="int32")
    terms = _zero_terms(left, right, shapes[0][-1], lookup)
    known_scales = left.scale is not None and right.scale is not None
    scale = times(left.scale, right.scale) if known_scales else None
    return with_epilogue(total, terms, scale, bias, max(map(len, shapes)))


def _varies_only(codes: Codes, axis: int) -> bool:
    """Whether zero point and scale are equal along all other axes."""
    for value in (codes.zero, codes.scale):
        shape = () if value is None else _shape(value)
        others = [extent for place, extent in enumerate(shape) if place - len(shape) != axis]
        if any(extent != 1 for extent in others):
            return False
    return True


def _shape(value: Parameter) -> tuple[int, ...]:
    return tuple(np.shape(value)) if is_known(value) else static_shape(value) or ()


def _zero_terms(left: Codes, right: Codes, depth: int, lookup: Lookup) -> list[Parameter]:
    """`Σ (a - x)(b - y) - Σ ab = -x Σ b - y Σ a + depth x y`, `int32`; without terms of zero."""
    x, y = (expanded(codes.zero, 2) for codes in (left, right))
    terms = []
    if not is_zero(x):
        terms.append(times(_negative(x), _summed(right.data, _ROWS, lookup)))
    if not is_zero(y):
        terms.append(times(_negative(y), _summed(left.data, _COLUMNS, lookup)))
    if len(terms) > 1:
        terms.append(times(times(x, y), np.asarray(depth, np.int32)))
    return terms


def _negative(value: Parameter) -> Parameter:
    return -value if is_known(value) else op.negative(value)


def _summed(data: Any, axis: int, lookup: Lookup) -> Parameter:
    """The sums along an axis, which stays with an extent of 1; `int32`."""
    values = known(data, lookup)
    if values is not None:
        return np.asarray(values.sum(axis=axis, keepdims=True, dtype=np.int32))
    return op.sum(op.astype(data, "int32"), axis, keepdims=True)
