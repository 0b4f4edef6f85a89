"""What learns from measurements: the exchangeable part of the cost model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ansor.config import CostModelConfig
from ansor.cost_model.gbdt import TrainingSet
from ansor.features.loop_tables import Floats


class LearnedModel(Protocol):
    """Learns the logarithm of a factor on the draft's throughput; without a draft, of the whole.

    It is sent to other processes, so that pickle must take it. `ResidualModel` is the default.
    """

    @property
    def is_trained(self) -> bool:
        """Whether `fit` has been called; before, nothing is predicted."""

    def prepare(self) -> None:
        """Begins in the background what the first `fit` would wait for; may do nothing."""

    def fit(self, data: TrainingSet) -> None:
        """Learns from all measured programs anew."""

    def predict(self, features: Floats) -> Floats:
        """`[P] float32` for `features [P, S, F] float32`: P programs, S stages, F features."""


# Makes a model from the settings and a seed. A schedule that a user wrote has a model of its own.
LearnedModelFactory = Callable[[CostModelConfig, int], LearnedModel]
