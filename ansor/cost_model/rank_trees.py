"""`RankTrees`: boosted trees with a pairwise rank loss (AutoTVM's `XGBoostCostModel`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ansor.config.policies import RankTreesConfig
from ansor.features.loop_tables import Floats

if TYPE_CHECKING:
    import xgboost


class RankTrees:
    """Ranks programs by rows of features.

    Args:
        config: sizes and rates.
        plan: the boosting stops when the recall of the `plan` fastest programs does not rise.
        seed: of the random choice of pairs.
    """

    def __init__(self, config: RankTreesConfig, plan: int, seed: int) -> None:
        self._config, self._plan, self._seed = config, plan, seed
        self._booster: xgboost.Booster | None = None

    def fit(self, features: Floats, throughput: Floats) -> None:
        """Trains on `features [N, F]` and throughputs `[N]`, from 0 (failed) to 1 (the best)."""
        import xgboost  # not before there is something to learn

        config, matrix = self._config, xgboost.DMatrix(features, throughput)
        parameters = {
            "max_depth": config.max_depth,
            "gamma": config.gamma,
            "min_child_weight": config.min_child_weight,
            "eta": config.learning_rate,
            "reg_lambda": config.reg_lambda,
            "objective": "rank:pairwise",
            "lambdarank_pair_method": "mean",
            "lambdarank_num_pair_per_sample": config.pairs,
            "lambdarank_normalization": False,
            "disable_default_eval_metric": True,
            "tree_method": "hist",
            "nthread": 1,
            "seed": self._seed,
        }
        booster = xgboost.train(
            *(parameters, matrix, config.rounds),
            evals=[(matrix, "train")],
            custom_metric=lambda scores, _: (
                "recall",
                average_recall(scores, throughput, self._plan),
            ),
            maximize=True,
            early_stopping_rounds=config.stopping_rounds,
            verbose_eval=False,
        )
        self._booster = booster[: booster.best_iteration + 1]

    def predict(self, features: Floats) -> Floats:
        """`[P] float32`: scores of `features [P, F]`; 0 before `fit`."""
        if self._booster is None:
            return np.zeros(len(features), dtype=np.float32)
        scores: Floats = self._booster.inplace_predict(features, predict_type="margin")
        return scores


def average_recall(scores: Floats, throughput: Floats, most: int) -> float:
    """Mean over n up to `most`: the share of the n fastest programs among the n best scores.

    Args:
        scores: `[N]`.
        throughput: `[N]`.
        most: the largest n.
    """
    rank = np.empty(len(throughput), dtype=np.int64)
    rank[np.argsort(-throughput, kind="stable")] = np.arange(len(rank))
    in_order = rank[np.argsort(-scores, kind="stable")]
    complete = np.bincount(np.maximum(in_order, np.arange(len(rank))), minlength=len(rank))
    counts = np.arange(1, len(rank) + 1)
    return float((np.cumsum(complete) / counts)[:most].mean())
