"""Tables of choices and their neighbours."""

from __future__ import annotations

import math

import numpy as np
import pytest
from definitions import NAMES, sketches
from hypothesis import given
from hypothesis import strategies as st

from ansor.program.decision import Decision, category, divisors, factorisations

extents = st.integers(1, 240)
parts = st.integers(1, 4)
tables = st.builds(factorisations, extents, parts)


@given(extents, parts)
def test_factors_multiply_to_the_extent(extent: int, count: int) -> None:
    table = factorisations(extent, count)
    assert table.dtype == np.int32
    assert table.shape[1] == count
    assert (table.prod(axis=1) == extent).all()


@given(extents, parts)
def test_all_factorisations_are_there_once(extent: int, count: int) -> None:
    table = factorisations(extent, count)
    assert len(np.unique(table, axis=0)) == len(table) == _number(extent, count)


def _number(extent: int, count: int) -> int:
    """Ordered factorisations: per prime, its exponent spread over `count` places."""
    total, prime = 1, 2
    while extent > 1:
        exponent = 0
        while extent % prime == 0:
            extent, exponent = extent // prime, exponent + 1
        total *= math.comb(exponent + count - 1, count - 1)
        prime += 1
    return total


@given(extents)
def test_divisors(extent: int) -> None:
    assert divisors(extent) == tuple(d for d in range(1, extent + 1) if extent % d == 0)


@given(tables, st.data())
def test_tile_neighbours_move_one_factor_between_two_levels(table, data: st.DataObject) -> None:
    decision = Decision("tile", "C", table)
    row = data.draw(st.integers(0, decision.size - 1))
    for neighbour in decision.neighbours[row]:
        assert 0 <= neighbour < decision.size
        changed = np.flatnonzero(table[row] != table[neighbour])
        if neighbour != row:
            assert len(changed) == 2
            _assert_one_prime_moved(table[row, changed], table[neighbour, changed])


def _assert_one_prime_moved(before, after) -> None:
    ratio = max(before[0], after[0]) // min(before[0], after[0])
    assert len(divisors(int(ratio))) == 2
    assert before.prod() == after.prod()


@given(st.integers(2, 240), st.integers(2, 4))
def test_a_full_table_is_connected_through_true_neighbours(extent: int, count: int) -> None:
    decision = Decision("tile", "C", factorisations(extent, count))
    own = np.arange(decision.size)[:, None]
    assert (decision.neighbours != own).all()
    reached, front = {0}, [0]
    while front:
        front = [int(n) for row in front for n in decision.neighbours[row] if n not in reached]
        reached.update(front)
        front = list(dict.fromkeys(front))
    assert len(reached) == decision.size


@given(tables, st.data())
def test_find_is_the_inverse_of_the_table(table, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(table) - 1))
    decision = Decision("tile", "C", table)
    assert decision.find(tuple(table[row])) == row
    assert decision.find((0,) * table.shape[1]) is None


def test_neighbours_of_a_category_are_the_entries_beside() -> None:
    decision = category("unroll", "C", (0, 16, 64))
    assert decision.table.tolist() == [[0], [16], [64]]
    assert decision.neighbours.tolist() == [[0, 1], [0, 2], [1, 2]]


def test_without_an_order_all_entries_are_neighbours() -> None:
    decision = category("order", "C", (0, 1, 2, 3), ordered=False)
    assert [sorted(near) for near in decision.neighbours.tolist()] == [
        [1, 2, 3],
        [0, 2, 3],
        [0, 1, 3],
        [0, 1, 2],
    ]
    assert category("one", "C", (7,), ordered=False).neighbours.tolist() == [[0]]


def test_a_single_choice_is_its_own_neighbour() -> None:
    assert set(category("one", "C", (7,)).neighbours.ravel()) == {0}
    assert set(Decision("one", "C", factorisations(1, 4)).neighbours.ravel()) == {0}


@pytest.mark.parametrize("name", NAMES)
def test_every_neighbour_of_a_real_table_is_in_it(name: str) -> None:
    for sketch in sketches(name):
        for decision in sketch.decisions:
            assert decision.size > 0
            assert decision.neighbours.shape[0] == decision.size
            assert ((decision.neighbours >= 0) & (decision.neighbours < decision.size)).all()


def test_the_nearest_choice_keeps_the_inner_factors() -> None:
    tile = Decision("x", "s", factorisations(224, 3))
    for row, expected in (((7, 4, 8), [7, 4, 8]), ((2, 4, 8), [7, 4, 8]), ((1, 4, 16), [2, 7, 16])):
        position = tile.nearest(row)
        assert position is not None
        assert tile.table[position].tolist() == expected
    assert tile.nearest((2, 4)) is None
    unroll = category("u", "s", (0, 16, 64))
    assert [unroll.nearest((value,)) for value in (0, 16, 64, 512)] == [0, 1, 2, 2]
