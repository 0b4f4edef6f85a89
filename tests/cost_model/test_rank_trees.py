"""Trees with a rank loss."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.config.policies import RankTreesConfig
from ansor.cost_model.rank_trees import RankTrees, average_recall

CONFIG = RankTreesConfig()


def data(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Features, one of them sometimes missing, and throughputs that depend on two of them."""
    rng = np.random.default_rng(count)
    features = rng.random((count, 5)).astype(np.float32)
    throughput = features[:, 0] + 0.5 * features[:, 3]
    features[rng.random(count) < 0.2, 4] = np.nan
    return features, (throughput / throughput.max()).astype(np.float32)


def test_the_published_parameters() -> None:
    assert (CONFIG.max_depth, CONFIG.learning_rate, CONFIG.gamma) == (3, 0.3, 1e-4)
    assert (CONFIG.min_child_weight, CONFIG.reg_lambda) == (1.0, 1.0)
    assert (CONFIG.rounds, CONFIG.stopping_rounds) == (8000, 20)


def test_trees_rank_programs_that_they_have_not_seen() -> None:
    model = RankTrees(CONFIG, 32, seed=0)
    model.fit(*data(300))
    features, throughput = data(200)
    pairs = np.triu_indices(200, 1)
    right = np.subtract.outer(model.predict(features), model.predict(features))[pairs]
    agree = right * np.subtract.outer(throughput, throughput)[pairs] > 0
    assert agree.mean() > 0.85


def test_only_the_order_of_throughputs_counts() -> None:
    features, throughput = data(100)
    scores = []
    for labels in (throughput, throughput**3):
        model = RankTrees(CONFIG, 32, seed=3)
        model.fit(features, labels)
        scores.append(model.predict(features))
    assert np.array_equal(scores[0], scores[1])


def test_untrained_and_constant_models_score_all_the_same() -> None:
    features, throughput = data(40)
    model = RankTrees(CONFIG, 32, seed=0)
    assert model.predict(features).tolist() == [0] * 40
    model.fit(features, np.ones_like(throughput))
    assert len(set(model.predict(features).tolist())) == 1


@pytest.mark.parametrize(
    ("scores", "most", "expected"),
    [
        ([4, 3, 2, 1], 4, 1.0),
        ([1, 2, 3, 4], 2, 0.0),  # of the best one and the best two none
        ([1, 2, 3, 4], 4, (0 + 0 + 2 / 3 + 1) / 4),
        ([3, 4, 2, 1], 2, (0 + 1) / 2),
        ([4, 3, 2, 1], 64, 1.0),
    ],
)
def test_average_recall(scores: list[float], most: int, expected: float) -> None:
    fastest_first = np.asarray([1.0, 0.8, 0.5, 0.0])
    assert average_recall(np.asarray(scores), fastest_first, most) == pytest.approx(expected)
