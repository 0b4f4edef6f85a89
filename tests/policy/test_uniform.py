"""Random programs and all programs in order; the draft as a filter."""

from __future__ import annotations

import numpy as np
import pytest
from definitions import sketches
from searches import run, search_of

from ansor.annotate.sample import everything
from ansor.config.policies import ROW_SEARCH
from ansor.policy.published.random_rows import RandomRows, numbered_rows
from ansor.policy.published.row_policy import RowPolicy
from ansor.policy.published.uniform import GridPolicy, UniformPolicy, _Grid

SMALL, SOFTMAX = sketches("total_sum")[1], sketches("softmax")[0]


def test_numbers_and_rows_are_the_same_space() -> None:
    rows = numbered_rows(SMALL, 0, SMALL.space_size)
    assert len(np.unique(rows, axis=0)) == SMALL.space_size
    assert rows[:, 0].tolist()[: SMALL.decisions[0].size] == list(range(SMALL.decisions[0].size))
    middle = numbered_rows(SMALL, 17, 9)
    assert np.array_equal(middle, rows[17:26])


def test_numbers_beyond_64_bits() -> None:
    sketch = sketches("winograd_conv2d")[-1]
    assert sketch.space_size > 1 << 40
    last = numbered_rows(sketch, sketch.space_size - 1, 1)[0]
    assert last.tolist() == [d.size - 1 for d in sketch.decisions]


def test_random_rows_of_a_small_space_are_a_permutation() -> None:
    source = RandomRows(SMALL, np.random.default_rng(0))
    rows = [source.draw(7) for _ in range(20)]
    drawn = np.concatenate(rows)
    assert len(drawn) == len(np.unique(drawn, axis=0)) == SMALL.space_size
    assert sorted(map(tuple, drawn)) == sorted(map(tuple, everything(SMALL).choices))


def test_random_programs_are_uniform_and_of_all_sketches() -> None:
    search = search_of(UniformPolicy)
    done = search._random(1800)
    counts = np.bincount([search.number[c.sketch] for c in done])
    assert (abs(counts - 200) < 60).all()
    first = np.stack([c.row for c in done if c.sketch is search.sketches[0]])
    assert first[:, 3:].mean(axis=0) == pytest.approx(1, abs=0.25)


# --- grid -----------------------------------------------------------------------------------


def test_a_grid_is_the_whole_space_from_untiled_loops_on() -> None:
    search = search_of(GridPolicy, "softmax", chosen=[SOFTMAX])
    done = run(search, 10_000, 256)
    assert search.exhausted
    legal = [c for c in search._considered(SOFTMAX, everything(SOFTMAX).choices) if c]
    assert not legal
    first = {
        d.name: d.table[c].tolist() for d, c in zip(SOFTMAX.decisions, done[0].row, strict=True)
    }
    for decision in SOFTMAX.decisions:
        if decision.table.shape[1] > 1:
            assert first[decision.name] == decision.table[-1].tolist()


def test_a_grid_is_the_same_for_every_seed() -> None:
    runs = [run(search_of(GridPolicy, seed=seed), 80) for seed in (0, 1)]
    assert [c.signature for c in runs[0]] == [c.signature for c in runs[1]]


def test_refused_blocks_grow_and_are_postponed() -> None:
    sketch = sketches("matmul_relu")[0]
    grid, seen = _Grid(sketch), []
    for _ in range(ROW_SEARCH.draws):
        seen.append(len(grid.block()))
        grid.note(has_new=False)
    assert seen[:4] == [64, 128, 256, 512]
    assert max(seen) == ROW_SEARCH.largest
    (later, end), (first, middle) = grid.ranges
    assert (first, end) == (sum(seen), sketch.space_size)
    assert later == middle == (first + end) // 2


def test_a_postponed_grid_still_has_every_program_once() -> None:
    grid, rows = _Grid(SOFTMAX), []
    grid._refused = ROW_SEARCH.draws  # every block is postponed
    while grid.ranges:
        rows.append(grid.block())
        grid.note(has_new=False)
    assert len(np.unique(np.concatenate(rows), axis=0)) == SOFTMAX.space_size


# --- the filter -----------------------------------------------------------------------------


def test_the_filter_leaves_out_what_the_draft_calls_slow() -> None:
    plain, filtered = (search_of(UniformPolicy, use_filter=on) for on in (False, True))
    scores = [[c.score for c in run(search, 200)] for search in (plain, filtered)]
    least = max(scores[1]) - np.log(ROW_SEARCH.slow_factor) - 0.5
    assert min(scores[0]) < least <= min(scores[1])
    assert max(scores[0]) - min(scores[0]) > np.log(ROW_SEARCH.slow_factor)


def test_the_promise_does_not_change_the_search() -> None:
    asked, other = search_of(UniformPolicy), search_of(UniformPolicy)
    assert 0 < asked.promise_s < np.inf
    assert asked.draft_best() is not None
    assert [c.signature for c in run(asked, 40)] == [c.signature for c in run(other, 40)]


def test_a_plan_is_spent_before_the_next() -> None:
    class Plans(RowPolicy):
        made = 0

        def _plan(self) -> list:  # type: ignore[type-arg]
            self.made += 1
            return self._random(10)

    search = search_of(Plans)
    sizes = [len(run(search, 4, 4)) for _ in range(3)]
    assert sizes == [4, 4, 4]
    assert search.made == 2
