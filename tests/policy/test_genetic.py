"""AutoTVM's genetic algorithm: generations of a hundred, three elites, crossover, mutation."""

from __future__ import annotations

import numpy as np
import pytest
from definitions import sketches
from searches import drafted_s, run, search_of

from ansor.config.policies import GeneticConfig
from ansor.policy.published.genetic import GeneticPolicy
from ansor.program.sketch import Sketch

SMALL = GeneticConfig(population=16)


def genetic(*spaces: Sketch, sizes: GeneticConfig = SMALL) -> GeneticPolicy:
    policy: GeneticPolicy = search_of(GeneticPolicy, chosen=spaces or None, sizes=sizes)
    return policy


def test_the_published_sizes() -> None:
    config = GeneticConfig()
    assert (config.population, config.elites, config.mutation_rate) == (100, 3, 0.1)
    assert len(genetic(sizes=config).propose(1000)) == 100


def test_nothing_is_bred_before_a_generation_is_measured() -> None:
    search = genetic()
    first = search.propose(10)
    search.learn(first, drafted_s(first))
    assert len(search.propose(10)) == 6
    assert search.elites == []


def test_the_three_fastest_of_all_generations_stay_parents() -> None:
    search = genetic()
    done = run(search, 64, 16)
    search.propose(1)
    fastest = sorted(done, key=lambda c: -c.score)[:3]
    assert [c.signature for c in search.elites] == [c.signature for c in fastest]


def test_a_child_is_the_head_of_one_parent_and_the_tail_of_another() -> None:
    sketch = sketches("conv2d")[0]
    search = genetic(sketch)
    first, second = search._random(2)
    search.learn([first, second], [1e-3, 1e-3])
    rows = search._crossed([c.measured(1e-3) for c in (first, second)], 200)
    allowed = set()
    for a, b in ((first.row, second.row), (second.row, first.row)):
        allowed |= {(*a[:point], *b[point:]) for point in range(len(a))}
    assert {tuple(row) for row in rows.tolist()} <= {tuple(map(int, row)) for row in allowed}
    assert len(np.unique(rows, axis=0)) > 2


def test_parents_are_drawn_in_proportion_to_their_throughput() -> None:
    search = genetic(*sketches("matmul_relu"), sizes=GeneticConfig(population=4000))
    parents = search._random(200)
    first = next(c for c in parents if c.sketch is search.sketches[0])
    second = next(c for c in parents if c.sketch is search.sketches[1])
    children = search._children([first.measured(1e-3), second.measured(4e-3)])
    assert len(children[first.sketch]) / 4000 == pytest.approx(0.8, abs=0.03)


def test_a_tenth_of_the_genes_is_drawn_anew() -> None:
    sketch = sketches("matmul_relu")[0]
    search = genetic(sketch)
    rows = np.zeros((4000, len(sketch.decisions)), dtype=np.int32)
    changed = search._mutated(sketch, rows) != rows
    for column, decision in enumerate(sketch.decisions):
        expected = 0.1 * (1 - 1 / decision.size)  # a gene may be drawn as it was
        assert changed[:, column].mean() == pytest.approx(expected, abs=0.02)


def test_failed_programs_have_no_children() -> None:
    search = genetic()
    batch = search.propose(16)
    search.learn(batch, [None] * 15 + [1e-3])
    search.propose(16)
    assert [c.signature for c in search.elites] == [batch[15].signature]


def test_failures_alone_lead_to_random_programs() -> None:
    search = genetic()
    for _ in range(3):
        batch = search.propose(16)
        assert len(batch) == 16
        search.learn(batch, [None] * 16)
