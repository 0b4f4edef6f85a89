"""The boosted trees: gradient, silence before training, learning, determinism."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ansor.config import CostModelConfig
from ansor.cost_model.gbdt import ResidualModel, TrainingSet, squared_loss

CONFIG = CostModelConfig()
STAGES, COLUMNS = 3, 12


def truth(features: np.ndarray) -> np.ndarray:
    """A sum over stages of something that trees can learn, `[P]`."""
    per_stage = np.where(features[..., 0] > 0.5, 0.8, -0.8) + 0.5 * features[..., 1]
    return per_stage.sum(axis=1)


def programs(count: int, seed: int, stages: int = STAGES) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.random((count, stages, COLUMNS)).astype(np.float32)


def training_set(count: int, seed: int = 0, stages: int = STAGES) -> TrainingSet:
    features = programs(count, seed, stages)
    residual = truth(features)
    return TrainingSet(
        features.reshape(-1, COLUMNS),
        np.repeat(np.arange(count), stages),
        (residual - residual.mean()).astype(np.float32),
        np.exp(residual - residual.max()).astype(np.float32),
    )


def loss(predicted: np.ndarray, data: TrainingSet) -> float:
    """``1/2 sum_p w_p (sum_s f(s) - y_p)^2``, written out."""
    total = 0.0
    for program, (residual, weight) in enumerate(zip(data.residual, data.weight, strict=True)):
        error = float(predicted[data.program == program].sum()) - float(residual)
        total += float(weight) * error**2 / 2
    return total


def test_gradient_agrees_with_finite_differences() -> None:
    data = training_set(7)
    predicted = np.random.default_rng(1).normal(size=7 * STAGES)
    gradient, curvature = squared_loss(predicted, data)
    step = 1e-4
    for row in range(len(predicted)):
        nudge = np.zeros_like(predicted)
        nudge[row] = step
        up, down = loss(predicted + nudge, data), loss(predicted - nudge, data)
        slope = (up - down) / (2 * step)
        bend = (up + down - 2 * loss(predicted, data)) / step**2
        assert gradient[row] == pytest.approx(slope, rel=1e-4, abs=1e-6)
        assert curvature[row] == pytest.approx(bend, rel=1e-3, abs=1e-5)


def test_gradient_vanishes_at_the_truth() -> None:
    data = training_set(5)
    exact = np.repeat(data.residual / STAGES, STAGES)
    assert np.abs(squared_loss(exact, data)[0]).max() < 1e-6


def test_stages_of_a_program_share_its_error() -> None:
    data = training_set(4)
    gradient, _ = squared_loss(np.zeros(4 * STAGES), data)
    by_program = gradient.reshape(4, STAGES)
    assert (by_program == by_program[:, :1]).all()
    np.testing.assert_allclose(by_program[:, 0], -data.weight * data.residual, rtol=1e-6)


def test_an_untrained_model_says_nothing() -> None:
    model = ResidualModel(CONFIG)
    assert not model.is_trained
    assert model.predict(programs(9, 0)).tolist() == [0.0] * 9


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    ranks = [np.argsort(np.argsort(x, kind="stable")) for x in (a, b)]
    return float(np.corrcoef(*ranks)[0, 1])


def test_it_learns_to_rank_programs_it_has_not_seen() -> None:
    model = ResidualModel(CONFIG, seed=0)
    model.fit(training_set(256))
    assert model.is_trained
    unseen = programs(200, seed=99)
    assert rank_correlation(model.predict(unseen), truth(unseen)) > 0.8


def test_more_records_make_it_better() -> None:
    unseen = programs(300, seed=99)
    found = []
    for count in (16, 512):
        model = ResidualModel(CONFIG)
        model.fit(training_set(count))
        found.append(rank_correlation(model.predict(unseen), truth(unseen)))
    assert found[0] < found[1] - 0.1


@pytest.mark.parametrize("stages", [1, 12, 24, 40])
def test_it_learns_whatever_the_number_of_stages(stages: int) -> None:
    data = training_set(256, stages=stages)
    model = ResidualModel(CONFIG)
    model.fit(data)
    predicted = model.predict(data.features.reshape(256, stages, COLUMNS))
    error = data.weight * (predicted - data.residual) ** 2
    assert error.sum() < 0.2 * (data.weight * data.residual**2).sum()


def test_programs_are_scored_one_by_one() -> None:
    model = ResidualModel(CONFIG)
    model.fit(training_set(64))
    rows = programs(20, seed=5)
    whole = model.predict(rows)
    assert whole.shape == (20,)
    lone = np.concatenate([model.predict(rows[i : i + 1]) for i in range(20)])
    np.testing.assert_array_equal(whole, lone)


def fingerprint(seed: int, threads: int = 1) -> str:
    """Hash of the predictions of a model that was trained just now."""
    model = ResidualModel(CONFIG, seed, threads)
    model.fit(training_set(128))
    return hashlib.sha256(model.predict(programs(64, 1)).tobytes()).hexdigest()


def test_training_twice_gives_the_same_model() -> None:
    assert fingerprint(seed=3) == fingerprint(seed=3)


def test_training_in_another_process_gives_the_same_model() -> None:
    script = "from test_residual_model import fingerprint; print(fingerprint(3))"
    folder = Path(__file__).parent
    path = os.pathsep.join([str(folder), *sys.path])
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert done.stdout.strip() == fingerprint(seed=3)
