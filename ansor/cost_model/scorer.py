"""`Scorer`: expected throughput of programs, by the draft and the learned correction.

Deviation: the paper's model knows nothing before the first measurement (§5.2), so that the first
batches are random; the analytic draft ranks programs from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ansor.config import CostModelConfig, SketchConfig
from ansor.cost_model.knobs import knob_features, knob_signature
from ansor.cost_model.learned import LearnedModel
from ansor.features.extract import extract
from ansor.features.loop_tables import Floats
from ansor.features.profile import StageProfile, profile
from ansor.program.nest import build_nest
from ansor.program.sketch import Population, Sketch
from ansor.targets.machine import M
from ansor.targets.search import StageDraft, TargetSearch

Drafts = Mapping[str, StageDraft]
LOOPS = ""  # features of loops; a space of knobs has the name of its sketch


def feature_space(sketch: Sketch) -> str:
    """The name of the feature space of a sketch: equal names mean comparable features."""
    return sketch.name if sketch.by_hand else LOOPS


@dataclass(frozen=True, eq=False)
class Estimate:
    """The models' estimates of a population.

    Attributes:
        drafted: `[P]`, log of the draft's throughput (1 / seconds); 0 without a draft.
        code: `[P]`, instructions that LLVM compiles; 0 if they are not counted.
        features: `[P, S, F]`, None if no model needs them.
        legal: `[P] bool`.
        signature: `[P, K]`: programs with equal rows are the same.
        space: name of the feature space: of loops, or of the knobs of one schedule.
    """

    drafted: Floats
    code: Floats
    features: Floats | None
    legal: npt.NDArray[np.bool_]
    signature: npt.NDArray[np.int32]
    space: str = LOOPS


class Scorer:
    """Scores programs by their expected log-throughput, less a price for the length of their code.

    Args:
        machine: parameters of the machine that programs are to run on.
        search: limits and draft of its kind of target.
        learned: corrects the draft as soon as it is trained.
        by_knobs: models of schedules that users wrote, by the space of their features.
    """

    def __init__(
        self,
        machine: M,
        search: TargetSearch[M],
        config: CostModelConfig,
        sketch_config: SketchConfig,
        learned: LearnedModel,
        by_knobs: Mapping[str, LearnedModel] = MappingProxyType({}),
    ) -> None:
        self.machine: Any = machine
        self.search: TargetSearch[Any] = search
        self._config, self._sketch_config = config, sketch_config
        self._model = learned
        self._by_knobs = dict(by_knobs)

    def _learned(self, space: str) -> LearnedModel | None:
        """The trained model of a space of features; None if there is none."""
        model = self._model if space == LOOPS else self._by_knobs.get(space)
        return model if model is not None and model.is_trained else None

    def estimate(self, population: Population, with_features: bool | None = None) -> Estimate:
        """Evaluates draft, legality and features; by default, features only for a trained model."""
        space = feature_space(population.sketch)
        if with_features is None:
            with_features = self._learned(space) is not None
        if population.sketch.by_hand:
            return _by_knobs(population, with_features)
        nest = build_nest(population)
        profiles = profile(nest)
        use_draft = self._config.use_draft
        drafts = self.search.draft(nest, profiles, self.machine) if use_draft else {}
        features = None
        if with_features:
            features = extract(population, profiles, draft_columns(drafts))
        drafted = _log_throughput(drafts, len(population))
        code = _code(drafts, len(population))
        legal = self.search.legal(nest, self.machine, self._sketch_config)
        signature = np.concatenate([nest.signature, _prefetched(profiles)], axis=1)
        return Estimate(drafted, code, features, legal, signature)

    def score(self, population: Population) -> Floats:
        """`[P]`: expected log-throughput, minus infinity for illegal programs."""
        return self.score_of(self.estimate(population))

    def score_of(self, estimate: Estimate) -> Floats:
        """Like `score`, for a given estimate."""
        scores = estimate.drafted - np.float32(self._config.code_price) * estimate.code
        learned = self._learned(estimate.space)
        if learned is not None and estimate.features is not None:
            scores = scores + learned.predict(estimate.features)
        return np.where(estimate.legal, scores, -np.inf).astype(np.float32)

    def is_blind_to(self, sketches: Iterable[Sketch]) -> bool:
        """Whether all legal programs score the same: there is no draft and no trained model."""
        return all(
            (sketch.by_hand or not self._config.use_draft)
            and self._learned(feature_space(sketch)) is None
            for sketch in sketches
        )


def _by_knobs(population: Population, with_features: bool) -> Estimate:
    """The estimate of programs whose loops are unknown: it has no draft, and all are legal."""
    nothing = np.zeros(len(population), dtype=np.float32)
    return Estimate(
        nothing,
        nothing,
        knob_features(population) if with_features else None,
        np.ones(len(population), dtype=np.bool_),
        knob_signature(population),
        feature_space(population.sketch),
    )


def _prefetched(profiles: Mapping[str, StageProfile]) -> npt.NDArray[np.int32]:
    """`[P, S]`: the stages whose weights are prefetched."""
    found = [profile.prefetched.exists for profile in profiles.values()]
    return np.stack(found, axis=1).astype(np.int32)


def _log_throughput(drafts: Drafts, programs: int) -> Floats:
    """`[P]`: log of the draft's throughput, 0 without a draft."""
    if not drafts:
        return np.zeros(programs, dtype=np.float32)
    drafted: Floats = -np.log(seconds(drafts))
    return drafted


def _code(drafts: Drafts, programs: int) -> Floats:
    """`[P]`: instructions of all stages that the compiler has to process."""
    counts = [draft.code for draft in drafts.values()]
    code: Floats = np.add.reduce([np.zeros(programs, dtype=np.float32), *counts])
    return code


def seconds(drafts: Drafts) -> Floats:
    """`[P]`: estimated time of each program."""
    total: Floats = np.add.reduce([b.seconds for b in drafts.values()])
    return total


def draft_columns(drafts: Drafts) -> list[list[Floats]]:
    """The columns of each stage's draft for the learned model, `[P]` each; none without a draft. On
    a GPU, all stages of a kernel share the columns of its draft."""
    if not drafts:
        return []
    total = seconds(drafts)
    return [draft.columns(total) for draft in drafts.values()]
