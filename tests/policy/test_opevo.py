"""OpEvo: eight parents, children by q-random walks, unseen children only."""

from __future__ import annotations

import numpy as np
import pytest
from definitions import sketches
from searches import drafted_s, run, search_of, with_categories

from ansor.config.policies import OpEvoConfig
from ansor.policy.candidate import Candidate
from ansor.policy.published.opevo import OpEvoPolicy
from ansor.program.sketch import Sketch

STILL = OpEvoConfig(walk=0.0)


def opevo(*spaces: Sketch, sizes: OpEvoConfig = OpEvoConfig(), seed: int = 0) -> OpEvoPolicy:  # noqa: B008
    policy: OpEvoPolicy = search_of(OpEvoPolicy, seed=seed, chosen=spaces or None, sizes=sizes)
    return policy


def test_a_generation_has_eight_children_of_the_eight_fastest() -> None:
    search = opevo()
    assert len(search.propose(64)) == 8
    done = run(search, 40, 16)
    fastest = sorted(done, key=lambda c: -c.score)[:8]
    assert {c.signature for c in search.parents()} == {c.signature for c in fastest}
    assert len(search.propose(64)) == 8


def test_without_a_walk_every_choice_is_a_parent_s() -> None:
    search = opevo(sketches("matmul_relu")[0], sizes=STILL)
    run(search, 24)
    parents = np.stack([c.row for c in search.parents()])
    (rows,) = search._children(search.parents()).values()
    for column in range(parents.shape[1]):
        assert set(rows[:, column]) <= set(parents[:, column])


def test_faster_parents_are_inherited_from_in_proportion() -> None:
    search = opevo(sketches("matmul_relu")[0], sizes=OpEvoConfig(parents=2, children=4000, walk=0))
    batch = search._random(2)
    search.learn(batch, [1e-3, 3e-3])
    fast, slow = (c.row for c in batch)
    (rows,) = search._children(search.parents()).values()
    for column in np.flatnonzero(fast != slow):
        assert (rows[:, column] == fast[column]).mean() == pytest.approx(0.75, abs=0.05)


def test_half_of_the_choices_walk_and_near_ones_are_the_most() -> None:
    sketch = sketches("matmul_relu")[0]
    search = opevo(sketch, sizes=OpEvoConfig(parents=1, children=4000))
    (parent,) = search._random(1)
    search.learn([parent], [1e-3])
    (rows,) = search._children(search.parents()).values()
    assert (rows[:, 0] != parent.row[0]).mean() == pytest.approx(0.5, abs=0.1)
    graph = search._graph(sketch).decisions[0]
    near = graph.near[parent.row[0], : graph.degree[parent.row[0]]]
    moved = rows[rows[:, 0] != parent.row[0], 0]
    assert np.isin(moved, near).mean() > 0.5


def test_the_sketch_is_inherited_and_walks_too() -> None:
    search = opevo(*sketches("matmul_relu"), sizes=OpEvoConfig(parents=1, children=4000))
    (parent,) = search._random(1)
    search.learn([parent], [1e-3])
    counts = {sketch: len(rows) for sketch, rows in search._children(search.parents()).items()}
    # Half do not walk; of those that walk one step, none is back.
    assert counts[parent.sketch] / 4000 == pytest.approx(0.5 + 0.125 / 8, abs=0.05)
    assert len(counts) == len(search.sketches)


def test_a_failed_program_is_no_parent() -> None:
    search = opevo()
    batch = search.propose(8)
    latency_s = [None, *drafted_s(batch[1:])]
    search.learn(batch, latency_s)
    assert batch[0].signature not in {c.signature for c in search.parents()}
    assert len(search.parents()) == 7


def test_failures_alone_lead_to_random_programs() -> None:
    search = opevo()
    for _ in range(4):
        batch = search.propose(8)
        assert len(batch) == 8
        search.learn(batch, [None] * 8)


def test_it_works_without_an_order_of_categories_and_beats_random_programs() -> None:
    def best(found: list[Candidate]) -> float:
        return max(c.score for c in found)

    gains = [
        best(run(opevo(with_categories(), seed=seed), 160))
        - best(opevo(with_categories(), seed=seed)._random(160))
        for seed in range(4)
    ]
    assert np.mean(gains) > 0
