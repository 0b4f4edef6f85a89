"""Tables with a row for each loop, outermost first, and a column for each program."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ansor.config import FEATURES

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]
_Scalar = TypeVar("_Scalar", bound=np.generic)

_FLOAT32 = np.finfo(np.float32)


def loop_table(rows: int, programs: int) -> npt.NDArray[np.float32]:
    """`[rows, P]` zeros, arranged so that the column of a program is read fast."""
    return np.zeros((rows, programs + FEATURES.row_gap), dtype=np.float32)[:, :programs]


def summed(tables: Iterable[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    """The sum of tables; NumPy's `add.reduce` would first copy them into one array."""
    return reduce(np.add, tables)


def from_inside(combine: np.ufunc, rows: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """`[L, P]`: each row, combined with the rows of all loops further in."""
    combined: npt.NDArray[_Scalar] = rows.copy()
    views = list(combined)
    for row, inner in zip(views[-2::-1], views[:0:-1], strict=True):
        combine(row, inner, out=row)  # five times as fast as NumPy's `accumulate`
    return combined


def masked_product(mask: Bools, rows: npt.NDArray[Any]) -> Floats:
    """`[P]`: product of the rows, `[L, P]`, at which the mask, `[L, P]` or `[L, 1]`, holds."""
    some = np.flatnonzero(mask.any(axis=1))  # usually few
    chosen = rows[some]
    if mask.shape[1] > 1:
        chosen = np.where(mask[some], chosen, rows.dtype.type(1))
    result: Floats = chosen.prod(axis=0, dtype=np.float32)
    return result


def all_inside(mask: Bools) -> Bools:
    """`[L, P]`: whether the mask holds for all loops further in."""
    inside = np.ones_like(mask)
    inside[:-1] = from_inside(np.logical_and, mask[1:])
    return inside


def innermost(mask: Bools) -> Numbers:
    """`[P]`: number of the innermost loop for which the mask, `[L, P]`, holds; -1 for none."""
    counted = mask * np.arange(1, len(mask) + 1, dtype=np.int16)[:, None]
    number: Numbers = counted.max(axis=0, initial=0).astype(np.int64) - 1
    return number


def count(mask: Bools) -> Numbers:
    """`[P]`: number of rows at which the mask holds; at most 127."""
    total = np.add.reduce(mask.view(np.int8), axis=0, dtype=np.int8)  # without a conversion
    number: Numbers = total.astype(np.int64)
    return number


def row_of(rows: npt.NDArray[_Scalar], number: npt.NDArray[Any]) -> npt.NDArray[_Scalar]:
    """`[P]`: the row `number` of each program; the last row for -1."""
    programs = np.arange(len(number))
    if rows.flags.c_contiguous:
        return rows.take(number * len(number) + programs)  # half the time of two indices
    picked: npt.NDArray[_Scalar] = rows[number, programs]
    return picked


def of_loop(rows: Floats, number: Numbers) -> Floats:
    """`[P]`: the row of loop `number` of each program; 1 for -1."""
    if not len(rows):
        return np.ones(len(number), dtype=np.float32)
    return np.where(number < 0, np.float32(1), row_of(rows, number))


def at_least(values: Floats, least: float) -> Floats:
    """`maximum` of a table and a number. With a number, NumPy takes three times as long as with a
    row that repeats it."""
    return np.maximum(values, _as_row(values, least))


def at_most(values: Floats, most: float) -> Floats:
    """`minimum` of a table and a number, see `at_least`."""
    return np.minimum(values, _as_row(values, most))


def _as_row(values: Floats, number: float) -> Floats:
    """A row of a table with the number in each column."""
    row: Floats = np.full(values.shape[1], number, dtype=np.float32)
    return row


def rough_log2(values: Floats) -> Floats:
    """Logarithms of positive numbers, linear between powers of two: at most 0.09 too small.

    The bits of a float have the exponent first, then the mantissa, and increase with the number.
    Trees use only the order of values. This takes a tenth of the time of NumPy's logarithm.
    """
    exponent = values.view(np.int32).astype(np.float32)
    exponent *= np.float32(_FLOAT32.eps)  # one over the number of mantissas
    exponent -= np.float32(_FLOAT32.maxexp - 1)  # the bias
    return exponent
