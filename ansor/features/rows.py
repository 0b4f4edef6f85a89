"""Tables with a row for each loop, outermost first, and a column for each program."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
_Scalar = TypeVar("_Scalar", bound=np.generic)

_APART = 16  # elements between rows: those a power of two apart share the same few lines of a cache


def table(rows: int, programs: int) -> npt.NDArray[np.float32]:
    """`[rows, P]` zeros, of which a program's column is soon read."""
    return np.zeros((rows, programs + _APART), dtype=np.float32)[:, :programs]


def summed(tables: Iterable[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    """Their sum; NumPy's `add.reduce` would first lay copies of them side by side."""
    return reduce(np.add, tables)


def from_inside(combine: np.ufunc, rows: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """`[L, P]`: what the rows come to, each with all those of loops further in."""
    combined: npt.NDArray[_Scalar] = rows.copy()
    views = list(combined)
    for row, inner in zip(views[-2::-1], views[:0:-1], strict=True):
        combine(row, inner, out=row)  # five times as fast as NumPy's `accumulate`
    return combined


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


def row_of(rows: npt.NDArray[_Scalar], number: npt.NDArray[Any]) -> npt.NDArray[_Scalar]:
    """`[P]`: of each program one row; the last one where its number is -1."""
    picked: npt.NDArray[_Scalar] = rows[number, np.arange(len(number))]
    return picked


def of_loop(rows: npt.NDArray[np.float32], number: Numbers) -> npt.NDArray[np.float32]:
    """`[P]`: of each program the row of one loop; 1 where its number is -1."""
    return row_of(np.concatenate([rows, np.ones((1, rows.shape[1]), dtype=rows.dtype)]), number)
