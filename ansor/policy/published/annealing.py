"""Simulated annealing over all sketches (AutoTVM's `SimulatedAnnealingOptimizer`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ansor.config.policies import AnnealingConfig
from ansor.features.loop_tables import Floats
from ansor.policy.published.knobs import Keys, KnobSpace, Points

Score = Callable[[Points], Floats]


@dataclass(frozen=True, eq=False)
class Pool:
    """The best programs of the chains so far, best first.

    Attributes:
        points: the programs.
        scores: `[P]`.
        keys: `[P]`, see `KnobSpace.keys`.
    """

    points: Points
    scores: Floats
    keys: Keys

    def extended(self, points: Points, scores: Floats, keys: Keys, most: int) -> Pool:
        """The best `most` of the pool and new programs, each once."""
        keys, first = np.unique(np.concatenate([self.keys, keys]), return_index=True)
        scores = np.concatenate([self.scores, scores])[first]
        best = np.argsort(-scores, kind="stable")[:most]
        joined = self.points.joined(points)
        return Pool(joined.take(first[best]), scores[best], keys[best])

    def least(self, count: int) -> float:
        """The score of the last of the `count` best; minus infinity if there are fewer."""
        return float(self.scores[count - 1]) if len(self.scores) >= count else -np.inf


def anneal(
    space: KnobSpace,
    score: Score,
    start: Points,
    measured: Keys,
    rng: np.random.Generator,
    config: AnnealingConfig,
) -> tuple[Points, Pool]:
    """The ends of the chains, and their best unmeasured programs.

    Args:
        space: of the programs.
        score: `[P]`, higher is better.
        start: first programs of the chains.
        measured: `[N]`, keys of programs that the pool leaves out, sorted.
        rng: source of all randomness.
        config: sizes and temperatures.
    """
    points, scores, last_gain = start, score(start), 0
    pool = Pool(points.take(np.arange(0)), scores[:0], measured[:0])
    pool, _ = _noted(space, pool, points, scores, measured, config)
    cooling = (config.first_temperature - config.last_temperature) / (config.steps + 1)
    for step in range(config.steps):
        moved = space.moved(points, rng)
        moved_scores = score(moved)
        temperature = config.first_temperature - cooling * step
        with np.errstate(over="ignore"):
            chance = np.exp((moved_scores - scores) / temperature)
        accepted = rng.random(len(chance)) < chance
        points, scores = moved.where(accepted, points), np.where(accepted, moved_scores, scores)
        pool, gained = _noted(space, pool, moved, moved_scores, measured, config)
        last_gain = step if gained else last_gain
        if step + 1 >= last_gain + config.early_stop:
            break
    return points, pool


def _noted(
    space: KnobSpace,
    pool: Pool,
    points: Points,
    scores: Floats,
    measured: Keys,
    config: AnnealingConfig,
) -> tuple[Pool, bool]:
    """The pool with new programs, and whether the best `config.plan` of it have changed."""
    most = config.plan * config.remembered
    able = np.flatnonzero(scores > pool.least(most))
    keys = space.keys(points.take(able))
    place = np.minimum(np.searchsorted(measured, keys), max(len(measured) - 1, 0))
    is_new = measured[place] != keys if len(measured) else np.ones(len(keys), dtype=np.bool_)
    if not is_new.any():
        return pool, False
    new = able[is_new]
    larger = pool.extended(points.take(new), scores[new], keys[is_new], most)
    changed = not np.array_equal(larger.keys[: config.plan], pool.keys[: config.plan])
    return larger, changed
