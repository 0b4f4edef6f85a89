"""`Scorer`: what programs are expected to take, by the draft and what was learned on top of it.

Deviation: the paper's model knows nothing before the first measurement (§5.2), so that the first
batches are random; the analytic draft ranks programs from the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ansor.config import CostModelConfig, SketchConfig
from ansor.cost_model.gbdt import ResidualModel
from ansor.features.extract import extract
from ansor.features.loop_tables import Floats
from ansor.features.profile import StageProfile, profile
from ansor.program.nest import LoopNest, build_nest
from ansor.program.sketch import Population
from ansor.targets.machine import M
from ansor.targets.search import StageDraft, TargetSearch

Drafts = Mapping[str, StageDraft]


@dataclass(frozen=True, eq=False)
class Estimate:
    """What the models say of a population.

    Attributes:
        drafted: `[P]`, log of the draft's throughput (1 / seconds); 0 without a draft.
        code: `[P]`, instructions that LLVM has to get through; 0 where they are not counted.
        features: `[P, S, F]`, or None where they were not needed.
        legal: `[P] bool`.
        nest: the loops that it was made of.
        prefetched: `[P, S]`: the stages whose weights are prefetched.
    """

    drafted: Floats
    code: Floats
    features: Floats | None
    legal: npt.NDArray[np.bool_]
    nest: LoopNest
    prefetched: npt.NDArray[np.int32]

    @property
    def signature(self) -> npt.NDArray[np.int32]:
        """`[P, K]`: equal rows are the same program."""
        return np.concatenate([self.nest.signature, self.prefetched], axis=1)


class Scorer:
    """Scores programs by their expected log-throughput, less what their length costs.

    Args:
        machine: parameters of the machine that programs are to run on.
        search: limits and draft of its kind of target.
        learned: corrects the draft; without training, it does not.
    """

    def __init__(
        self,
        machine: M,
        search: TargetSearch[M],
        config: CostModelConfig,
        sketch_config: SketchConfig,
        learned: ResidualModel,
    ) -> None:
        self.machine: Any = machine
        self.search: TargetSearch[Any] = search
        self._config, self._sketch_config = config, sketch_config
        self._model = learned

    def estimate(self, population: Population, with_features: bool | None = None) -> Estimate:
        """Evaluates draft, legality and features; these by default only where trees use them."""
        nest = build_nest(population)
        profiles = profile(nest)
        use_draft = self._config.use_draft
        drafts = self.search.draft(nest, profiles, self.machine) if use_draft else {}
        features = None
        if self._model.is_trained if with_features is None else with_features:
            features = extract(population, profiles, draft_columns(drafts))
        drafted = _log_throughput(drafts, len(population))
        code = _code(drafts, len(population))
        legal = self.search.legal(nest, self.machine, self._sketch_config)
        return Estimate(drafted, code, features, legal, nest, _prefetched(profiles))

    def score(self, population: Population) -> Floats:
        """`[P]`: expected log-throughput, minus infinity where a program may not be built."""
        return self.score_of(self.estimate(population))

    def score_of(self, estimate: Estimate) -> Floats:
        """Like `score`, for an estimate already made."""
        scores = estimate.drafted - np.float32(self._config.code_price) * estimate.code
        if self._model.is_trained and estimate.features is not None:
            scores = scores + self._model.predict(estimate.features)
        return np.where(estimate.legal, scores, -np.inf).astype(np.float32)

    @property
    def is_blind(self) -> bool:
        """Whether all legal programs score the same: there is no draft, and nothing is learned."""
        return not self._config.use_draft and not self._model.is_trained


def _prefetched(profiles: Mapping[str, StageProfile]) -> npt.NDArray[np.int32]:
    """`[P, S]`: the stages whose weights are prefetched."""
    found = [profile.prefetched.exists for profile in profiles.values()]
    return np.stack(found, axis=1).astype(np.int32)


def _log_throughput(drafts: Drafts, programs: int) -> Floats:
    """`[P]`: log of the draft's throughput, 0 where there is no draft."""
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
    """The columns for the learned model from each stage's draft, `[P]` each; none without a draft.
    On a GPU they come from the kernel's draft, which stages inside another's loops share."""
    if not drafts:
        return []
    total = seconds(drafts)
    return [draft.columns(total) for draft in drafts.values()]
