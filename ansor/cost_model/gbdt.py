"""Boosted trees that learn the errors of the draft (Ansor §5.2).

Deviation: the paper predicts a normalised throughput as a sum over statements. Here the sum of the
trees over a program's stages is the logarithm of a factor on the draft's estimate. Without records
the factor is 1, and the draft alone ranks. The loss keeps the paper's weight, which is larger for
faster programs of a task.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ansor.config import CostModelConfig
from ansor.features.loop_tables import Floats

if TYPE_CHECKING:
    import xgboost


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Measured programs of all tasks.

    Attributes:
        features: `[R, F] float32`, one row per stage.
        program: `[R] int64`, the program that each row belongs to, ascending.
        residual: `[N] float32`, log of measured over drafted throughput of each program, centred
            per task; zero if both are slow (`CostModelConfig.slow_factor`).
        weight: `[N] float32` in (0, 1]: throughput relative to the best of the task.
    """

    features: Floats
    program: npt.NDArray[np.int64]
    residual: Floats
    weight: Floats


class ResidualModel:
    """Sum over stages of boosted trees; scores 0 for everything until it is trained.

    One thread by default: the data are small, and a second thread costs more in waiting than it
    saves.
    """

    def __init__(self, config: CostModelConfig, seed: int = 0, threads: int = 1) -> None:
        self._config = config
        self._seed = seed
        self._threads = threads
        self._booster: xgboost.Booster | None = None

    @property
    def is_trained(self) -> bool:
        """Whether `fit` has been called."""
        return self._booster is not None

    def prepare(self) -> None:
        """Begins to import the library, which takes 0.3 s, in the background."""
        if "xgboost" not in sys.modules:
            Thread(target=import_module, args=("xgboost",)).start()

    def fit(self, data: TrainingSet) -> None:
        """Trains from scratch, as the paper does each round."""
        import xgboost  # not before there is something to learn

        config = self._config
        matrix = xgboost.DMatrix(data.features, base_margin=np.zeros(len(data.features)))
        parameters = {
            "max_depth": config.max_depth,
            "eta": config.learning_rate,
            "min_child_weight": config.min_child_weight,
            "reg_lambda": config.reg_lambda,
            "tree_method": "hist",
            "max_bin": config.max_bin,
            "nthread": self._threads,
            "seed": self._seed,
            "disable_default_eval_metric": True,
            "base_score": 0.0,
        }
        self._booster = xgboost.train(
            *(parameters, matrix, config.rounds),
            obj=lambda p, _: damped_loss(p, data, config.learning_rate),
        )

    def predict(self, features: Floats) -> Floats:
        """`[P]`: correction of the log-throughput for `features [P, S, F]`."""
        programs, stages, columns = features.shape
        if self._booster is None:
            return np.zeros(programs, dtype=np.float32)
        rows = features.reshape(programs * stages, columns)
        values = self._booster.inplace_predict(rows, predict_type="margin")
        total: Floats = values.reshape(programs, stages).sum(axis=1, dtype=np.float32)
        return total


def damped_loss(predicted: Floats, data: TrainingSet, rate: float) -> tuple[Floats, Floats]:
    """`squared_loss`, with more curvature for programs of many rows.

    Each row takes a step of `rate` times the error. Without damping, the sum of the steps could
    exceed the error, and errors would grow from tree to tree."""
    gradient, curvature = squared_loss(predicted, data)
    stages = np.bincount(data.program, minlength=len(data.residual))[data.program]
    return gradient, curvature * np.maximum(1.0, rate * stages).astype(np.float32)


def squared_loss(predicted: Floats, data: TrainingSet) -> tuple[Floats, Floats]:
    """Gradient and curvature per row of ``w_p (sum_s f(s) - y_p)^2`` (Ansor, equation 1)."""
    count = len(data.residual)
    total = np.bincount(data.program, weights=predicted, minlength=count)
    gradient = data.weight * (total - data.residual)
    curvature = np.maximum(data.weight, 1e-6)
    return gradient[data.program].astype(np.float32), curvature[data.program].astype(np.float32)
