"""Which choices are one step apart."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from definitions import sketches
from hypothesis import given
from hypothesis import strategies as st
from searches import with_categories

from ansor.policy.published.moves import ChoiceGraph, SketchGraph
from ansor.program.decision import Decision, category, factorisations, tailed


@given(st.sampled_from([(12, 2), (16, 4), (30, 3), (1, 4), (7, 2), (0, 3)]), st.data())
def test_one_prime_moves_between_two_loops(sizes: tuple[int, int], data: st.DataObject) -> None:
    table = factorisations(*sizes)
    graph = ChoiceGraph(Decision("tile", "C", table))
    choice = data.draw(st.integers(0, len(table) - 1))
    for near in graph.near[choice, : graph.degree[choice]]:
        changed = np.flatnonzero(table[choice] != table[near])
        low, high = sorted(table[near][changed] / table[choice][changed])
        assert len(changed) == 2
        assert low * high == pytest.approx(1)
        assert all(high % d for d in range(2, int(high)))


def test_a_tile_reaches_every_tile_and_other_products() -> None:
    table = np.concatenate([factorisations(24, 3), tailed(24, 3, (5, 7), 0.5)])
    graph = ChoiceGraph(Decision("tile", "C", table))
    reached, front = {0}, [0]
    while front:
        near = [n for c in front for n in graph.near[c, : graph.degree[c]].tolist()]
        front = sorted(set(near) - reached)
        reached.update(front)
    assert reached == set(range(len(table)))


def test_ordered_categories_are_a_line_and_the_rest_is_complete() -> None:
    line = ChoiceGraph(category("unroll", "C", (0, 16, 64, 512)))
    full = ChoiceGraph(category("order", "C", (3, 1, 2, 0), ordered=False))
    assert [line.near[c, : line.degree[c]].tolist() for c in range(4)] == [[1], [0, 2], [1, 3], [2]]
    for choice in range(4):
        near = full.near[choice, : full.degree[choice]].tolist()
        assert near == [c for c in range(4) if c != choice]


def test_the_length_of_a_walk_is_geometric() -> None:
    """On a long line, k steps with probability 0.5^(k+1): no step half the time."""
    graph, rng = ChoiceGraph(category("line", "C", tuple(range(2001)))), np.random.default_rng(0)
    ends = graph.walked(np.full(40_000, 1000, dtype=np.int32), 0.5, rng)
    share = {distance: n / 40_000 for distance, n in Counter(abs(ends - 1000).tolist()).items()}
    # After 2 steps the walk is back with probability 1/2, after 4 with 6/16.
    assert share[0] == pytest.approx(0.5 + 0.125 / 2 + 0.03125 * 6 / 16 + 0.0025, abs=0.01)
    assert share[1] == pytest.approx(0.25 + 0.0625 * 6 / 8 + 0.0156 * 20 / 32 + 0.002, abs=0.01)


def test_a_walk_stays_where_there_is_one_choice() -> None:
    graph, rng = ChoiceGraph(category("one", "C", (4,))), np.random.default_rng(0)
    assert graph.walked(np.zeros(50, dtype=np.int32), 0.5, rng).tolist() == [0] * 50


@pytest.mark.parametrize("name", ["matmul_relu", "conv2d", "total_sum"])
def test_neighbours_of_a_program_differ_in_one_decision(name: str) -> None:
    rng = np.random.default_rng(0)
    for sketch in sketches(name):
        graph = SketchGraph(sketch)
        row = np.asarray([rng.integers(0, d.size) for d in sketch.decisions], dtype=np.int32)
        near = graph.neighbours(row)
        assert ((near != row).sum(axis=1) == 1).all()
        assert len(np.unique(near, axis=0)) == len(near)


def test_actions_lead_to_the_neighbours() -> None:
    sketch = with_categories()
    graph = SketchGraph(sketch)
    row = np.asarray([d.size // 2 for d in sketch.decisions], dtype=np.int32)
    actions = np.flatnonzero(graph.reached(row[None])[0] != row[graph.column])
    after = graph.after(np.repeat(row[None], len(actions), axis=0), actions)
    assert {tuple(r) for r in after.tolist()} == {tuple(r) for r in graph.neighbours(row).tolist()}
