"""Tables of loops by programs, against loops in Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ansor.features.rows import all_inside, from_inside, innermost, of_loop, row_of, table

SHAPES = array_shapes(min_dims=2, max_dims=2, max_side=6)
MASKS = arrays(np.bool_, st.one_of(SHAPES, st.just((0, 3))))


@given(mask=MASKS)
def test_masks_are_asked_from_inside(mask: np.ndarray) -> None:
    loops, programs = mask.shape
    inside, number = all_inside(mask), innermost(mask)
    for program in range(programs):
        column = mask[:, program].tolist()
        assert inside[:, program].tolist() == [all(column[i + 1 :]) for i in range(loops)]
        assert number[program] == max((i for i in range(loops) if column[i]), default=-1)


@given(rows=arrays(np.float32, SHAPES, elements=st.integers(1, 4)))
@pytest.mark.parametrize("combine", [np.add, np.multiply])
def test_rows_come_together_from_inside(combine: np.ufunc, rows: np.ndarray) -> None:
    before = rows.copy()
    found = from_inside(combine, rows)
    assert (rows == before).all()
    for loop in range(len(rows)):
        assert (found[loop] == combine.reduce(rows[loop:], axis=0)).all()


def test_each_program_picks_a_row_of_its_own() -> None:
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    number = np.array([2, 0, -1, 1])
    assert row_of(rows, number).tolist() == [8, 1, 10, 7]
    assert of_loop(rows, number).tolist() == [8, 1, 1, 7]
    assert of_loop(rows[:0], np.full(4, -1)).tolist() == [1, 1, 1, 1]


def test_a_table_is_empty_and_its_rows_do_not_touch() -> None:
    made = table(3, 4096)
    assert made.shape == (3, 4096)
    assert made.dtype == np.float32
    assert not made.any()
    assert made.strides[0] > 4096 * made.itemsize
    made[1] = 1
    assert made.sum(axis=1).tolist() == [0, 4096, 0]
