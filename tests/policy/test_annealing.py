"""Simulated annealing over all sketches."""

from __future__ import annotations

import numpy as np
from definitions import sketches

from ansor.config.policies import AnnealingConfig
from ansor.features.loop_tables import Floats
from ansor.policy.published.annealing import Pool, anneal
from ansor.policy.published.knobs import KnobSpace, Points

SPACE = KnobSpace(sketches("matmul_relu"))
NONE = np.empty(0, dtype=np.uint64)


class Scores:
    """Higher for rows of small numbers; counts the calls."""

    def __init__(self, constant: bool = False) -> None:
        self.calls, self._constant = 0, constant

    def __call__(self, points: Points) -> Floats:
        self.calls += 1
        assert len(points) == 128
        found = -points.rows.sum(axis=1).astype(np.float32)
        return np.zeros_like(found) if self._constant else found


def annealed(
    score: Scores, config: AnnealingConfig, measured: np.ndarray = NONE
) -> tuple[Points, Pool]:
    rng = np.random.default_rng(0)
    start = SPACE.random(config.chains, rng)
    return anneal(SPACE, score, start, np.sort(measured), rng, config)


def test_the_published_sizes() -> None:
    config = AnnealingConfig()
    assert (config.plan, config.chains, config.steps) == (64, 128, 500)
    assert (config.first_temperature, config.last_temperature) == (1.0, 0.0)
    assert (config.early_stop, config.random_rate) == (50, 0.05)


def test_128_chains_walk_for_500_steps() -> None:
    score = Scores()
    points, _ = annealed(score, AnnealingConfig(early_stop=10**6))
    assert score.calls == 1 + 500
    assert len(points) == 128


def test_chains_end_after_50_steps_without_a_better_plan() -> None:
    score = Scores(constant=True)
    _, pool = annealed(score, AnnealingConfig())
    assert len(pool.points) == 256
    assert 50 <= score.calls - 1 < 60


def test_the_pool_has_the_best_programs_met_each_once() -> None:
    score = Scores()
    _, pool = annealed(score, AnnealingConfig())
    assert (np.diff(pool.scores) <= 0).all()
    assert pool.scores[0] == 0  # the best program of a sketch
    assert len(np.unique(pool.keys)) == len(pool.keys) == 256
    assert np.array_equal(SPACE.keys(pool.points), pool.keys)


def test_measured_programs_are_left_out() -> None:
    _, first = annealed(Scores(), AnnealingConfig())
    _, second = annealed(Scores(), AnnealingConfig(), first.keys)
    assert not np.isin(second.keys, first.keys).any()


def test_cold_chains_only_climb() -> None:
    config = AnnealingConfig(first_temperature=1e-6, steps=40)
    rng = np.random.default_rng(0)
    start = SPACE.random(config.chains, rng)
    ends, _ = anneal(SPACE, Scores(), start, NONE, rng, config)
    assert (ends.rows.sum(axis=1) <= start.rows.sum(axis=1)).all()
    hot, _ = annealed(Scores(), AnnealingConfig(first_temperature=1e6, steps=40))
    assert hot.rows.sum() > ends.rows.sum()
