"""G-BFS: the fastest program is expanded by five of its neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from definitions import sketches
from searches import drafted_s, run, search_of, with_categories

from ansor.policy.published.best_first import BestFirstPolicy
from ansor.program.sketch import Sketch


def best_first(*spaces: Sketch, name: str = "matmul_relu") -> BestFirstPolicy:
    policy: BestFirstPolicy = search_of(BestFirstPolicy, name, chosen=spaces or None)
    return policy


def test_it_begins_with_the_untiled_program_of_each_sketch() -> None:
    search = best_first()
    batch = search.propose(64)
    assert [c.sketch for c in batch] == list(search.sketches)
    for candidate in batch:
        for decision, choice in zip(candidate.sketch.decisions, candidate.row, strict=True):
            if decision.table.shape[1] > 1:
                assert decision.table[choice, 0] == decision.table[:, 0].max()
            else:
                assert choice == 0


@pytest.mark.parametrize("space", [sketches("matmul_relu")[0], with_categories()])
def test_five_neighbours_of_the_fastest_follow(space: Sketch) -> None:
    search = best_first(space)
    expanded: set[bytes] = set()
    done = search.propose(64)
    search.learn(done, drafted_s(done))
    graph = search._graph(space)
    for _ in range(8):
        fastest = max((c for c in done if c.signature not in expanded), key=lambda c: c.score)
        batch = search.propose(64)
        near = {tuple(row) for row in graph.neighbours(fastest.row).tolist()}
        assert len(batch) == 5
        assert all(tuple(c.row.tolist()) in near for c in batch)
        search.learn(batch, drafted_s(batch))
        expanded.add(fastest.signature)
        done += batch


def test_failed_programs_are_expanded_last() -> None:
    search = best_first(with_categories())
    (start,) = search.propose(64)
    search.learn([start], [1e-3])
    batch = search.propose(64)
    search.learn(batch, [None, None, None, None, 5e-3])
    near = search._graph(start.sketch).neighbours(batch[4].row)
    rows = {tuple(row) for row in near.tolist()}
    assert all(tuple(c.row.tolist()) in rows for c in search.propose(64))


def test_categories_are_varied() -> None:
    done = run(best_first(with_categories()), 120)
    columns = [i for i, d in enumerate(with_categories().decisions) if d.table.shape[1] == 1]
    rows = np.stack([c.row for c in done])
    for column in columns:
        assert len(np.unique(rows[:, column])) == with_categories().decisions[column].size


def test_neighbours_that_were_left_out_come_when_the_queue_is_empty() -> None:
    """The search continues when all programs have been expanded once."""
    search = best_first(name="softmax")
    done = run(search, 400)
    assert len(done) == len({c.signature for c in done}) == 400
