"""Tables with a row for each loop, outermost first, and a column for each program."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
_Scalar = TypeVar("_Scalar", bound=np.generic)


def from_inside(combine: np.ufunc, rows: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """`[L, P]`: what the rows come to, each with all those of loops further in."""
    combined: npt.NDArray[_Scalar] = rows.copy()
    for row in reversed(range(len(rows) - 1)):  # five times as fast as NumPy's `accumulate`
        combine(combined[row], combined[row + 1], out=combined[row])
    return combined


def all_inside(mask: Bools) -> Bools:
    """`[L, P]`: whether the mask holds for all loops further in."""
    inside = np.ones_like(mask)
    inside[:-1] = from_inside(np.logical_and, mask[1:])
    return inside


def innermost(mask: Bools) -> Numbers:
    """`[P]`: number of the innermost loop for which the mask, `[L, P]`, holds; -1 for none."""
    padded = np.concatenate([np.ones((1, mask.shape[1]), dtype=np.bool_), mask])
    number: Numbers = len(mask) - 1 - padded[::-1].argmax(axis=0)
    return number


def row_of(rows: npt.NDArray[_Scalar], number: npt.NDArray[Any]) -> npt.NDArray[_Scalar]:
    """`[P]`: of each program one row; the last one where its number is -1."""
    picked: npt.NDArray[_Scalar] = rows[number, np.arange(len(number))]
    return picked


def of_loop(rows: npt.NDArray[np.float32], number: Numbers) -> npt.NDArray[np.float32]:
    """`[P]`: of each program the row of one loop; 1 where its number is -1."""
    return row_of(np.concatenate([rows, np.ones((1, rows.shape[1]), dtype=rows.dtype)]), number)
