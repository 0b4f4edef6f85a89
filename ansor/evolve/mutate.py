"""Mutation: a few decisions of each program change, mostly to a neighbouring choice.

Neighbours of a tile differ by one prime factor moved between two levels, after OpEvo's small
steps on the factorisation lattice (AAAI'21).

Deviation: Ansor (§5.1) moves a random factor between two levels, and has a separate mutation for
each kind of annotation. Here one mutation moves any decision, mostly to a neighbour. Searches with
equal rates for all decisions ended closer to the best known draft than with learned rates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ansor.config import EvolutionConfig
from ansor.program.decision import Decision, IntArray
from ansor.program.sketch import Population

# One child per parent, of the same sketch. It is sent to other processes.
Mutator = Callable[[Population, np.random.Generator, EvolutionConfig], Population]


def mutate(parents: Population, rng: np.random.Generator, config: EvolutionConfig) -> Population:
    """Returns one child per parent; decisions without an alternative do not change."""
    decisions = parents.sketch.decisions
    choices = parents.choices.copy()
    chosen = _chosen(parents, rng, config.mutations_per_child)
    nearby = rng.random(choices.shape) < config.neighbour_rate
    for column, decision in enumerate(decisions):
        rows = np.flatnonzero(chosen[:, column])
        if decision.size < 2 or not len(rows):
            continue
        current = choices[rows, column]
        anywhere = rng.integers(0, decision.size - 1, len(rows))
        anywhere += anywhere >= current  # any but the current one
        step = _neighbour(decision, current, rng)
        choices[rows, column] = np.where(nearby[rows, column], step, anywhere)
    return Population(parents.sketch, choices)


def mutate_by_any(
    parents: Population,
    rng: np.random.Generator,
    config: EvolutionConfig,
    mutators: Sequence[Mutator],
) -> Population:
    """Returns one child per parent; a random mutator makes each child."""
    if len(mutators) == 1:
        return mutators[0](parents, rng, config)
    chosen, choices = rng.integers(len(mutators), size=len(parents)), parents.choices.copy()
    for number, mutator in enumerate(mutators):
        rows = np.flatnonzero(chosen == number)
        if len(rows):
            choices[rows] = mutator(parents.take(rows), rng, config).choices
    return Population(parents.sketch, choices)


def _neighbour(decision: Decision, current: IntArray, rng: np.random.Generator) -> IntArray:
    """A random neighbour of each choice; the choice itself only where there is no other."""
    near = decision.neighbours[current]
    rows = np.arange(len(current))
    drawn = near[rows, rng.integers(0, near.shape[1], len(rows))]
    other = near[rows, (near != current[:, None]).argmax(axis=1)]
    step: IntArray = np.where(drawn == current, other, drawn)
    return step


def _chosen(parents: Population, rng: np.random.Generator, mean: float) -> npt.NDArray[np.bool_]:
    """`[P, D]`: which decisions mutate; at least one that has alternatives."""
    free = np.asarray([decision.size > 1 for decision in parents.sketch.decisions])
    count = max(int(free.sum()), 1)
    chosen: npt.NDArray[np.bool_] = (rng.random(parents.choices.shape) < mean / count) & free
    forced = rng.random(parents.choices.shape) * free
    none = ~chosen.any(axis=1)
    chosen[none, forced[none].argmax(axis=1)] = True
    return chosen
