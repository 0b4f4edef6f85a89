"""Laws of the operators, and that the search earns its keep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from definitions import NAMES, sketches
from hypothesis import given, settings
from hypothesis import strategies as st

from ansor.annotate.sample import sample
from ansor.config import EvolutionConfig
from ansor.evolve.crossover import crossover
from ansor.evolve.descend import neighbourhood
from ansor.evolve.evolution import Score, evolve
from ansor.evolve.mutate import mutate
from ansor.program.decision import category
from ansor.program.sketch import Population, Sketch

CONFIG = EvolutionConfig(population=64, generations=6)
seeds = st.integers(0, 2**31)
any_sketch = st.sampled_from([sketch for name in NAMES for sketch in sketches(name)])
unhurried = settings(deadline=None, max_examples=60)


def drawn(sketch: Sketch, count: int, seed: int = 0) -> Population:
    return sample(sketch, count, np.random.default_rng(seed))


def sizes(sketch: Sketch) -> np.ndarray:
    return np.asarray([decision.size for decision in sketch.decisions])


def fixed(name: str = "f") -> Sketch:
    """A sketch that leaves nothing to choose."""
    whole = sketches("matmul")[0]
    return Sketch(whole.dag, whole.steps, (category(name, "C", (7,)), category("g", "C", (1,))))


# --- mutation -------------------------------------------------------------------------------


@unhurried
@given(any_sketch, seeds, st.floats(0, 1), st.floats(0, 10))
def test_mutants_are_programs(sketch: Sketch, seed: int, nearby: float, mean: float) -> None:
    config = replace(CONFIG, neighbour_rate=nearby, mutations_per_child=mean)
    parents = drawn(sketch, 20, seed)
    before = parents.choices.copy()
    children = mutate(parents, np.random.default_rng(seed), config)
    assert children.choices.dtype == np.int32
    assert children.choices.shape == parents.choices.shape
    assert ((children.choices >= 0) & (children.choices < sizes(sketch))).all()
    np.testing.assert_array_equal(parents.choices, before)


@unhurried
@given(any_sketch, seeds)
def test_a_mutant_differs_from_its_parent_by_neighbours(sketch: Sketch, seed: int) -> None:
    config = replace(CONFIG, neighbour_rate=1.0, mutations_per_child=0.0)  # exactly one decision
    parents = drawn(sketch, 30, seed)
    children = mutate(parents, np.random.default_rng(seed), config)
    for old, new in zip(parents.choices, children.choices, strict=True):
        (changed,) = np.flatnonzero(old != new)
        assert new[changed] in sketch.decisions[changed].neighbours[old[changed]]


@unhurried
@given(any_sketch, seeds, st.floats(0, 1))
def test_every_mutant_changes(sketch: Sketch, seed: int, nearby: float) -> None:
    parents = drawn(sketch, 50, seed)
    config = replace(CONFIG, neighbour_rate=nearby)
    children = mutate(parents, np.random.default_rng(seed), config)
    assert (children.choices != parents.choices).any(axis=1).all()


def test_far_mutations_reach_everything() -> None:
    sketch = sketches("matmul")[0]
    one = Population(sketch, np.repeat(drawn(sketch, 1).choices, 4000, axis=0))
    config = replace(CONFIG, neighbour_rate=0.0)
    children = mutate(one, np.random.default_rng(0), config).choices
    reached = [len(np.unique(children[:, column])) for column in range(children.shape[1])]
    assert reached == sizes(sketch).tolist(), "every choice, its own where others changed"


@pytest.mark.parametrize("mean", [1.0, 1.5, 3.0])
def test_mean_number_of_mutations(mean: float) -> None:
    sketch = sketches("conv2d")[0]
    parents = drawn(sketch, 4000)
    config = replace(CONFIG, mutations_per_child=mean, neighbour_rate=0.0)
    children = mutate(parents, np.random.default_rng(0), config).choices
    free = int((sizes(sketch) > 1).sum())
    expected = mean + (1 - mean / free) ** free  # where none was drawn, one is forced
    assert (children != parents.choices).sum(axis=1).mean() == pytest.approx(expected, rel=0.04)


def test_a_sketch_without_alternatives_stays() -> None:
    parents = drawn(fixed(), 5)
    children = mutate(parents, np.random.default_rng(0), CONFIG)
    np.testing.assert_array_equal(children.choices, parents.choices)


# --- crossover ------------------------------------------------------------------------------


@unhurried
@given(any_sketch, seeds)
def test_a_child_takes_each_stage_whole_from_one_parent(sketch: Sketch, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mothers, fathers = sample(sketch, 25, rng), sample(sketch, 25, rng)
    children = crossover(mothers, fathers, rng)
    assert children.choices.dtype == np.int32
    owners = np.asarray([decision.stage for decision in sketch.decisions])
    for mother, father, child in zip(
        mothers.choices, fathers.choices, children.choices, strict=True
    ):
        for stage in set(owners):
            columns = owners == stage
            part = child[columns].tolist()
            assert part in (mother[columns].tolist(), father[columns].tolist())


def test_stages_choose_their_parents_independently() -> None:
    sketch = next(s for s in sketches("softmax") if len({d.stage for d in s.decisions}) > 2)
    zeros = np.zeros((4000, len(sketch.decisions)), dtype=np.int32)
    ones = np.ones_like(zeros)
    rng = np.random.default_rng(0)
    children = crossover(Population(sketch, zeros), Population(sketch, ones), rng).choices
    owners = [decision.stage for decision in sketch.decisions]
    stages = list(dict.fromkeys(owners))
    picked = np.stack([children[:, owners.index(stage)] for stage in stages])
    assert np.abs(picked.mean(axis=1) - 0.5).max() < 0.05
    assert np.abs(np.corrcoef(picked) - np.eye(len(stages))).max() < 0.1


# --- neighbourhood --------------------------------------------------------------------------


@unhurried
@given(any_sketch, seeds)
def test_neighbours_are_distinct_and_one_decision_away(sketch: Sketch, seed: int) -> None:
    (row,) = drawn(sketch, 1, seed).choices
    near = neighbourhood(sketch, row).choices
    assert len(np.unique(near, axis=0)) == len(near)
    assert ((near != row).sum(axis=1) == 1).all()
    expected = {
        (column, int(choice))
        for column, decision in enumerate(sketch.decisions)
        for choice in decision.neighbours[row[column]]
        if choice != row[column]
    }
    found = [int(np.flatnonzero(other != row)[0]) for other in near]
    assert {(c, int(other[c])) for c, other in zip(found, near, strict=True)} == expected


def test_without_alternatives_there_are_no_neighbours() -> None:
    sketch = fixed()
    near = neighbourhood(sketch, np.zeros(2, dtype=np.int32))
    assert near.choices.shape == (0, 2)


# --- the search -----------------------------------------------------------------------------


def landscape(sketch: Sketch, seed: int) -> Score:
    """Higher the nearer every tile is to a hidden one: smooth, so that small steps pay."""
    (row,) = drawn(sketch, 1, 1000 + seed).choices
    goals = [
        np.log2(d.table[c].astype(float) + 1) for d, c in zip(sketch.decisions, row, strict=True)
    ]

    def score(population: Population) -> np.ndarray:
        total = np.zeros(len(population))
        for decision, goal in zip(sketch.decisions, goals, strict=True):
            values = np.log2(population.values(decision.name) + 1.0)
            total -= np.abs(values - goal).sum(axis=1)
        return total.astype(np.float32)

    return score


class Counting:
    """A score that counts its programs."""

    def __init__(self, score: Score) -> None:
        self.count, self._score = 0, score

    def __call__(self, population: Population) -> np.ndarray:
        self.count += len(population)
        return self._score(population)


SKETCH = sketches("conv2d")[0]


@unhurried
@given(any_sketch, seeds)
def test_what_it_returns(sketch: Sketch, seed: int) -> None:
    start, score = drawn(sketch, 40, seed), landscape(sketch, seed % 7)
    best, scores = evolve(start, score, np.random.default_rng(seed), CONFIG)
    assert len(best) == len(scores) <= CONFIG.population
    assert len(np.unique(best.choices, axis=0)) == len(best)
    assert (np.diff(scores) <= 0).all()
    np.testing.assert_array_equal(score(best), scores)
    assert scores[0] >= score(start).max(), "the best is never lost"


def test_no_generations_keep_the_best_of_the_start() -> None:
    start, score = drawn(SKETCH, 100), landscape(SKETCH, 0)
    rng = np.random.default_rng(0)
    best, scores = evolve(start, score, rng, replace(CONFIG, generations=0))
    np.testing.assert_array_equal(scores, np.sort(score(start))[::-1][: CONFIG.population])
    assert len(best) == CONFIG.population


def test_it_improves_on_its_start() -> None:
    gains, config = [], replace(CONFIG, settled=CONFIG.generations)
    for seed in range(20):
        start, score = drawn(SKETCH, 64, seed), landscape(SKETCH, seed)
        _, scores = evolve(start, score, np.random.default_rng(seed), config)
        gains.append(float(scores[0] - score(start).max()))
    assert min(gains) > 0


def test_it_beats_random_sampling_with_as_many_evaluations() -> None:
    wins, difference = 0, 0.0
    for seed in range(20):
        score = Counting(landscape(SKETCH, seed))
        _, scores = evolve(drawn(SKETCH, 64, seed), score, np.random.default_rng(seed), CONFIG)
        random = landscape(SKETCH, seed)(drawn(SKETCH, score.count, 5000 + seed)).max()
        wins += bool(scores[0] > random)
        difference += float(scores[0] - random)
    assert wins >= 15
    assert difference > 20 * 0.5


def test_crossover_and_mutation_each_work_alone() -> None:
    for rate in (0.0, 1.0):
        config = replace(CONFIG, crossover_rate=rate)
        sketch = sketches("softmax")[0]
        start, score = drawn(sketch, 32), landscape(sketch, 3)
        _, scores = evolve(start, score, np.random.default_rng(0), config)
        assert scores[0] > score(start).max()


def run(seed: int, score: Score) -> list[list[int]]:
    best, _ = evolve(drawn(SKETCH, 32, seed=9), score, np.random.default_rng(seed), CONFIG)
    rows: list[list[int]] = best.choices.tolist()
    return rows


def test_the_same_seed_gives_the_same_result_another_another() -> None:
    score = landscape(SKETCH, 1)
    assert run(3, score) == run(3, score)
    assert run(3, score) != run(4, score)


def test_a_constant_score() -> None:
    def constant(population: Population) -> np.ndarray:
        return np.zeros(len(population), dtype=np.float32)

    found = run(3, constant)
    assert len(found) == CONFIG.population
    assert found == run(3, constant)


def only_legal(share: float) -> Score:
    """All but a share of the programs are illegal, as a hash of the row decides."""

    def score(population: Population) -> np.ndarray:
        hashed = (
            population.choices.astype(np.int64) @ np.arange(1, 2 * population.choices.shape[1], 2)
        ) % 97
        legal = hashed < 97 * share
        return np.where(legal, landscape(SKETCH, 0)(population), -np.inf).astype(np.float32)

    return score


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_the_illegal_comes_after_the_legal(share: float) -> None:
    start, score = drawn(SKETCH, 64), only_legal(share)
    _, scores = evolve(start, score, np.random.default_rng(0), CONFIG)
    finite = np.isfinite(scores)
    assert finite.any()
    assert (np.diff(finite.astype(int)) <= 0).all()
    assert not np.isnan(scores).any()


def test_the_illegal_is_never_a_parent_beside_the_legal() -> None:
    """One legal program among many: all children of the first generation descend from it."""
    start = drawn(SKETCH, 64)
    (only,) = start.choices[5:6]
    generations: list[np.ndarray] = []

    def near(population: Population) -> np.ndarray:
        distance = (population.choices != only).sum(axis=1)
        generations.append(distance)
        return np.where(distance == 0, 1.0, -np.inf).astype(np.float32)

    config = replace(CONFIG, generations=1, crossover_rate=0.0, mutations_per_child=0.0)
    evolve(start, near, np.random.default_rng(0), config)
    first, children = generations
    assert (first > 1).sum() == 63, "no other program of the start is near"
    assert (children == 1).all(), "one mutation away"


def test_nothing_legal_at_all() -> None:
    def nothing(population: Population) -> np.ndarray:
        return np.full(len(population), -np.inf, dtype=np.float32)

    best, scores = evolve(drawn(SKETCH, 16), nothing, np.random.default_rng(0), CONFIG)
    assert len(best)
    assert np.isneginf(scores).all()
