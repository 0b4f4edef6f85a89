"""Boosted trees that fit in a small file: a thin layer over xgboost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost

from benchmarks.surrogate_inputs import Floats

_STATISTICS = ("loss_changes", "sum_hessian", "base_weights")  # of a fit; no prediction reads them
_DIGITS = 6  # of a threshold or leaf, near the precision of a float32


@dataclass(frozen=True)
class TreesConfig:
    """Sizes and rates of a fit.

    On held-out programs of OPE.0 and OPE.3, trees of depth 4 or 8 and twice as many trees predict
    no better.
    """

    rounds: int = 300
    max_depth: int = 6
    learning_rate: float = 0.06
    min_child_weight: float = 3.0  # programs of a leaf, by weight
    column_share: float = 0.5  # columns that a tree sees
    objective: str = "reg:squarederror"


class Trees:
    """Fitted trees."""

    def __init__(self, booster: xgboost.Booster) -> None:
        booster.set_param({"nthread": 1})
        self._booster = booster

    @classmethod
    def fitted(
        cls,
        inputs: Floats,
        wanted: npt.NDArray[np.floating],
        config: TreesConfig,
        weight: npt.NDArray[np.floating] | None = None,
    ) -> Trees:
        """Trees for `inputs [P, C]` and `wanted [P]`; each program counts by `weight [P]`."""
        parameters = {
            "max_depth": config.max_depth,
            "eta": config.learning_rate,
            "min_child_weight": config.min_child_weight,
            "colsample_bytree": config.column_share,
            "objective": config.objective,
            "tree_method": "hist",
            "nthread": 1,
            "seed": 0,
        }
        matrix = xgboost.DMatrix(inputs, label=wanted, weight=weight)
        return cls(xgboost.train(parameters, matrix, config.rounds)).stored_and_read()

    def stored_and_read(self) -> Trees:
        """The trees as they come back from a file: rounded."""
        return Trees.from_json(self.to_json())

    def predict(self, inputs: Floats) -> Floats:
        """`[P]` for `inputs [P, C]`; a probability where the objective is logistic."""
        found: Floats = self._booster.inplace_predict(inputs)
        return found

    def to_json(self) -> dict[str, Any]:
        """The model as JSON values, without the statistics of the fit."""
        model: dict[str, Any] = json.loads(self._booster.save_raw("json").decode())
        for tree in model["learner"]["gradient_booster"]["model"]["trees"]:
            for name in _STATISTICS:
                tree[name] = [0.0] * len(tree[name])
            tree["split_conditions"] = [
                float(f"{value:.{_DIGITS}g}") for value in tree["split_conditions"]
            ]
        return model

    @classmethod
    def from_json(cls, model: Mapping[str, Any]) -> Trees:
        """Inverse of `to_json`.

        Raises:
            xgboost.core.XGBoostError: this is no model.
        """
        booster = xgboost.Booster()
        booster.load_model(bytearray(json.dumps(model).encode()))
        return cls(booster)
