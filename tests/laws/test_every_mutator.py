"""What every mutator keeps to: the one of the package, and one of a test."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from definitions import NAMES, sketches
from hypothesis import given
from hypothesis import strategies as st
from sampling import sample

from ansor.config import EvolutionConfig
from ansor.evolve.mutate import Mutator, mutate, mutate_by_any
from ansor.program.sketch import Population

CONFIG = EvolutionConfig()
SKETCH = sketches("matmul_relu")[0]


def draw_first(
    parents: Population, rng: np.random.Generator, config: EvolutionConfig
) -> Population:
    """Draws the first decision of each program anew."""
    choices = parents.choices.copy()
    choices[:, 0] = rng.integers(parents.sketch.decisions[0].size, size=len(parents))
    return Population(parents.sketch, choices)


MUTATORS = pytest.mark.parametrize("mutator", [mutate, draw_first])


@MUTATORS
@pytest.mark.parametrize("name", NAMES[:6])
def test_each_parent_has_a_child_in_the_space(mutator: Mutator, name: str) -> None:
    for sketch in sketches(name):
        if not sketch.decisions:
            continue
        parents = sample(sketch, 16, np.random.default_rng(0))
        before = parents.choices.copy()
        children = mutator(parents, np.random.default_rng(1), CONFIG)
        sizes = [decision.size for decision in sketch.decisions]
        assert children.sketch is sketch
        assert children.choices.shape == before.shape
        assert children.choices.dtype == np.int32
        assert ((children.choices >= 0) & (children.choices < sizes)).all()
        assert np.array_equal(parents.choices, before), "parents are left alone"


@MUTATORS
def test_the_same_seed_makes_the_same_children_elsewhere(mutator: Mutator) -> None:
    parents = sample(SKETCH, 32, np.random.default_rng(0))
    sent = pickle.loads(pickle.dumps(mutator))
    first, second = (m(parents, np.random.default_rng(5), CONFIG) for m in (mutator, sent))
    assert np.array_equal(first.choices, second.choices)


@given(st.integers(0, 1000))
def test_of_several_mutators_each_makes_some_children(seed: int) -> None:
    parents = sample(SKETCH, 64, np.random.default_rng(seed))
    used = []

    def noted(some: Population, rng: np.random.Generator, config: EvolutionConfig) -> Population:
        used.append(len(some))
        return some

    children = mutate_by_any(parents, np.random.default_rng(seed), CONFIG, (noted, noted))
    assert np.array_equal(children.choices, parents.choices)
    assert sum(used) == 64
    assert len(used) == 2
