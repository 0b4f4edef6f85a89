"""Tables of loops by programs, against loops in Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ansor.features.loop_tables import (
    all_inside,
    at_least,
    at_most,
    count,
    from_inside,
    innermost,
    loop_table,
    masked_product,
    of_loop,
    rough_log2,
    row_of,
)

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


@given(rows=arrays(np.float32, SHAPES, elements=st.integers(1, 4)), data=st.data())
def test_a_product_is_of_the_rows_that_are_asked_for(rows: np.ndarray, data: st.DataObject) -> None:
    mask = data.draw(arrays(np.bool_, rows.shape))
    assert (masked_product(mask, rows) == np.where(mask, rows, 1).prod(axis=0)).all()
    column = mask[:, :1]
    assert (masked_product(column, rows) == np.where(column, rows, 1).prod(axis=0)).all()
    assert (count(mask) == mask.sum(axis=0)).all()
    assert (count(mask[:, ::2]) == mask[:, ::2].sum(axis=0)).all()


@given(rows=arrays(np.float32, SHAPES, elements=st.integers(-4, 4)), limit=st.integers(-4, 4))
def test_limits_are_those_of_numpy(rows: np.ndarray, limit: int) -> None:
    assert (at_least(rows, limit) == np.maximum(rows, limit)).all()
    assert (at_most(rows, limit) == np.minimum(rows, limit)).all()


POSITIVE = st.floats(2.0**-100, 2.0**100, width=32)


@given(values=arrays(np.float32, 8, elements=POSITIVE))
def test_rough_logarithms_keep_the_order_and_are_near(values: np.ndarray) -> None:
    found, exact = rough_log2(values), np.log2(values.astype(np.float64))
    assert (exact - found < 0.0861).all()
    assert (exact - found > -1e-4).all()
    assert (np.diff(found[np.argsort(values)]) >= 0).all()
    powers = np.exp2(np.arange(-3, 20, dtype=np.float32))
    assert (rough_log2(powers) == np.arange(-3, 20)).all()


def test_a_table_is_empty_and_its_rows_do_not_touch() -> None:
    made = loop_table(3, 4096)
    assert made.shape == (3, 4096)
    assert made.dtype == np.float32
    assert not made.any()
    assert made.strides[0] > 4096 * made.itemsize
    made[1] = 1
    assert made.sum(axis=1).tolist() == [0, 4096, 0]
