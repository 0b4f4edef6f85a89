"""What every model that learns from measurements keeps to: the trees, and one of a test."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from definitions import HARDWARE, dag, sketches
from fake_world import World
from sampling import sample

from ansor.config import CostModelConfig, SketchConfig
from ansor.cost_model.gbdt import ResidualModel, TrainingSet
from ansor.cost_model.learned import LearnedModel, LearnedModelFactory
from ansor.cost_model.model import CostModel
from ansor.features.loop_tables import Floats
from ansor.targets.cpu.search import CPU_SEARCH

CONFIG = CostModelConfig(min_records=16)


class NearestProgram:
    """Predicts the residual of the measured program with the most similar features."""

    def __init__(self, config: CostModelConfig, seed: int) -> None:
        self._known: tuple[Floats, Floats] | None = None

    @property
    def is_trained(self) -> bool:
        return self._known is not None

    def prepare(self) -> None:
        pass

    def fit(self, data: TrainingSet) -> None:
        sums = np.zeros((len(data.residual), data.features.shape[1]), np.float32)
        np.add.at(sums, data.program, data.features)
        self._known = sums, data.residual

    def predict(self, features: Floats) -> Floats:
        if self._known is None:
            return np.zeros(len(features), np.float32)
        sums, residual = self._known
        distance = np.abs(features.sum(axis=1)[:, None] - sums[None]).sum(axis=2)
        found: Floats = residual[distance.argmin(axis=1)]
        return found


MODELS = pytest.mark.parametrize("factory", [ResidualModel, NearestProgram])


def training_set(seed: int = 0, programs: int = 64) -> TrainingSet:
    """Programs of two stages whose residual is in their first feature."""
    rng = np.random.default_rng(seed)
    features = rng.random((2 * programs, 6), dtype=np.float32)
    residual = 2.0 * features[:, 0].reshape(programs, 2).sum(axis=1) - 2.0
    number = np.repeat(np.arange(programs), 2)
    return TrainingSet(features, number, residual.astype(np.float32), np.ones(programs, np.float32))


def trained(factory: LearnedModelFactory, seed: int = 0) -> LearnedModel:
    model = factory(CONFIG, seed)
    model.prepare()
    model.fit(training_set())
    return model


@MODELS
def test_nothing_is_predicted_before_the_first_fit(factory: LearnedModelFactory) -> None:
    model = factory(CONFIG, 0)
    assert not model.is_trained
    assert not model.predict(np.ones((3, 2, 6), np.float32)).any()


@MODELS
def test_it_ranks_what_it_has_seen(factory: LearnedModelFactory) -> None:
    model, data = trained(factory), training_set()
    predicted = model.predict(data.features.reshape(-1, 2, 6))
    assert model.is_trained
    assert predicted.shape == data.residual.shape
    assert np.isfinite(predicted).all()
    assert np.corrcoef(predicted, data.residual)[0, 1] > 0.8


@MODELS
def test_the_same_seed_predicts_the_same_and_so_does_a_copy(factory: LearnedModelFactory) -> None:
    features = training_set(seed=1).features.reshape(-1, 2, 6)
    model = trained(factory, seed=3)
    expected = model.predict(features)
    assert np.array_equal(trained(factory, seed=3).predict(features), expected)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(features), expected)


@MODELS
def test_scores_follow_what_was_learned(factory: LearnedModelFactory) -> None:
    model = CostModel(HARDWARE, CPU_SEARCH, CONFIG, SketchConfig(), 0, factory)
    population = sample(sketches("matmul")[0], 32, np.random.default_rng(0))
    before = model.score(population)
    model.add(dag("matmul").key, population, np.linspace(1e-3, 1e-2, len(population)).tolist())
    assert model.fit()
    after = model.score(population)
    assert np.array_equal(np.isfinite(before), np.isfinite(after))
    assert not np.array_equal(before, after)


@MODELS
def test_the_tuner_searches_with_it(factory: LearnedModelFactory) -> None:
    world = World(cost_model=factory)
    assert world.run(96).trials == 96
