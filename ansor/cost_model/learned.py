"""The protocol of models that learn from measurements: the exchangeable part of the cost model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ansor.config import CostModelConfig
from ansor.cost_model.gbdt import TrainingSet
from ansor.features.loop_tables import Floats


class LearnedModel(Protocol):
    """Learns the logarithm of a factor on the draft's throughput, or of the throughput if there is
    no draft.

    Models are sent to other processes: pickle must support them. `ResidualModel` is the default.
    """

    @property
    def is_trained(self) -> bool:
        """Whether `fit` has been called; the scorer uses no prediction before."""

    def prepare(self) -> None:
        """Starts slow preparations of the first `fit` in the background; may do nothing."""

    def fit(self, data: TrainingSet) -> None:
        """Learns from all measured programs anew."""

    def predict(self, features: Floats) -> Floats:
        """`[P] float32` for `features [P, S, F] float32`: P programs, S stages, F features."""


# Makes a model from the settings and a seed. A schedule that a user wrote has a model of its own.
LearnedModelFactory = Callable[[CostModelConfig, int], LearnedModel]
