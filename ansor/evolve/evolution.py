"""A few generations of mutation and crossover under a score (Ansor §5.1).

Deviation: the paper draws parents in proportion to their score and runs a fixed number of
generations. Here the rank of a parent counts, because scores are logarithms, and the evolution ends
after generations without a gain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ansor.config import EvolutionConfig
from ansor.evolve.crossover import crossover
from ansor.evolve.mutate import Mutator, mutate, mutate_by_any
from ansor.program.sketch import Population, concatenate

Score = Callable[[Population], npt.NDArray[np.float32]]


def evolve(
    start: Population,
    score: Score,
    rng: np.random.Generator,
    config: EvolutionConfig,
    known: npt.NDArray[np.float32] | None = None,
    mutators: Sequence[Mutator] = (mutate,),
) -> tuple[Population, npt.NDArray[np.float32]]:
    """Returns the distinct programs with the best scores, best first, and their scores.

    Args:
        start: the first generation.
        score: `[P]`, higher is better, minus infinity for illegal programs.
        rng: source of all randomness.
        config: sizes and rates.
        known: scores of the first generation, if they are known.
        mutators: a random one of them makes each child that no crossover makes.
    """
    first = score(start) if known is None else known
    best, scores = _fittest(start, first, config.population)
    idle = 0
    for _ in range(config.generations):
        children = _children(best, scores, rng, config, mutators)
        before, pool = scores[0], concatenate([best, children])
        all_scores = np.concatenate([scores, score(children)])
        best, scores = _fittest(pool, all_scores, config.population)
        idle = 0 if scores[0] > before + config.settled_gain else idle + 1
        if idle == config.settled:
            break
    return best, scores


def _children(
    parents: Population,
    scores: npt.NDArray[np.float32],
    rng: np.random.Generator,
    config: EvolutionConfig,
    mutators: Sequence[Mutator],
) -> Population:
    count = config.population
    chance = _selection(scores)
    picked = parents.take(rng.choice(len(parents), count, p=chance))
    others = parents.take(rng.choice(len(parents), count, p=chance))
    crossed = crossover(picked, others, rng)
    mutated = mutate_by_any(picked, rng, config, mutators)
    cross = rng.random(count) < config.crossover_rate
    choices = np.where(cross[:, None], crossed.choices, mutated.choices)
    return Population(parents.sketch, choices)


def _selection(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Chance of each parent, proportional to its rank: scores are logarithms of any scale."""
    rank = np.empty(len(scores))
    rank[np.argsort(scores, kind="stable")] = np.arange(1, len(scores) + 1)
    rank[~np.isfinite(scores)] = 1e-9
    chance: npt.NDArray[np.float64] = rank / rank.sum()
    return chance


def _fittest(
    pool: Population, scores: npt.NDArray[np.float32], count: int
) -> tuple[Population, npt.NDArray[np.float32]]:
    _, first = np.unique(pool.choices, axis=0, return_index=True)
    order = first[np.argsort(-scores[first], kind="stable")][:count]
    return pool.take(order), scores[order]
