"""`CostModel`: draft plus residual, one model for all tasks of a run."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from ansor.config import CostModelConfig, SketchConfig
from ansor.cost_model.gbdt import ResidualModel, TrainingSet
from ansor.cost_model.learned import LearnedModel, LearnedModelFactory
from ansor.cost_model.scorer import LOOPS, Scorer
from ansor.features.loop_tables import Floats
from ansor.program.sketch import Population
from ansor.targets.machine import M
from ansor.targets.search import TargetSearch


@dataclass(eq=False)
class _Records:
    """Measured programs of one task."""

    space: str  # meaning of the features, see `feature_space`
    features: list[Floats] = field(default_factory=list)  # [S, F] each
    drafted: list[float] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)


class CostModel(Scorer):
    """A scorer that learns from measurements of all tasks.

    Attributes:
        fits: number of calls of `fit` that trained; each changes the scores.
    """

    def __init__(
        self,
        machine: M,
        search: TargetSearch[M],
        config: CostModelConfig,
        sketch_config: SketchConfig,
        seed: int = 0,
        learned: LearnedModelFactory = ResidualModel,
    ) -> None:
        super().__init__(machine, search, config, sketch_config, learned(config, seed))
        self._seed, self._make_model = seed, learned
        self._records: dict[str, _Records] = {}
        self._fitted: Counter[str] = Counter()  # records learned from, by the space of features
        self.fits = 0

    @property
    def scorer(self) -> Scorer:
        """A scorer with the current scores but without the training data, which other processes
        can receive quickly."""
        config, sketch_config = self._config, self._sketch_config
        return Scorer(self.machine, self.search, config, sketch_config, self._model, self._by_knobs)

    def add(self, key: str, population: Population, latency_s: list[float]) -> None:
        """Takes in measured programs of the task `key`; `latency_s` in seconds, one per row."""
        if not latency_s:
            return
        estimate = self.estimate(population, with_features=True)
        assert estimate.features is not None
        records = self._records.setdefault(key, _Records(estimate.space))
        records.features += list(estimate.features)
        records.drafted += estimate.drafted.tolist()
        records.latency_s += latency_s

    @property
    def size(self) -> int:
        """Number of programs in the training data, used or not."""
        return sum(len(records.latency_s) for records in self._records.values())

    def prepare(self) -> None:
        """Starts slow preparations of the first `fit`; to be called some time before it."""
        if self._config.use_gbdt:
            self._model.prepare()

    def fit(self) -> bool:
        """Trains if there are enough new records; returns whether it did."""
        if not self._config.use_gbdt:
            return False
        sizes: Counter[str] = Counter()
        for records in self._records.values():
            sizes[records.space] += len(records.latency_s)
        due = [space for space, size in sizes.items() if self._is_due(space, size)]
        for space in due:
            self._model_of(space).fit(self._training_set(space))
            self._fitted[space] = sizes[space]
        self.fits += bool(due)
        return bool(due)

    def _is_due(self, space: str, size: int) -> bool:
        growth = 1 + self._config.retrain_growth
        return size >= max(self._config.min_records, self._fitted[space] * growth)

    def _model_of(self, space: str) -> LearnedModel:
        if space == LOOPS:
            return self._model
        if space not in self._by_knobs:
            self._by_knobs[space] = self._make_model(self._config, self._seed)
        return self._by_knobs[space]

    def _training_set(self, space: str) -> TrainingSet:
        features, program, residual, weight = [], [], [], []
        count = 0
        for records in self._records.values():
            if records.space != space:
                continue
            newest = slice(-self._config.max_records, None)
            throughput = -np.log(np.asarray(records.latency_s[newest], dtype=np.float32))
            drafted = np.asarray(records.drafted[newest], dtype=np.float32)
            own_residual, own_weight = self._residual(throughput, drafted)
            residual.append(own_residual)
            weight.append(own_weight)
            for row in records.features[newest]:
                features.append(row)
                program.append(np.full(len(row), count, dtype=np.int64))
                count += 1
        return TrainingSet(
            np.concatenate(features),
            np.concatenate(program),
            np.concatenate(residual).astype(np.float32),
            np.concatenate(weight).astype(np.float32),
        )

    def _residual(self, throughput: Floats, drafted: Floats) -> tuple[Floats, Floats]:
        """Targets and weights of the programs of a task, `[N]` each.

        Deviation: the paper learns from every program. Here the target of a program that is slow by
        the draft and by measurement is 0.

        Args:
            throughput: `[N]`, logarithms of measured throughputs.
            drafted: `[N]`, logarithms of drafted throughputs.
        """
        weight = np.exp(throughput - throughput.max())
        slow = throughput.max() - math.log(self._config.slow_factor)
        fast = np.where(throughput >= slow, weight, 0.0)
        expected = drafted + np.average(throughput - drafted, weights=fast)
        if not self._config.use_draft:
            return throughput - expected, weight
        known = np.where(expected < slow, np.maximum(throughput, slow), throughput)
        return known - np.maximum(expected, slow), weight
