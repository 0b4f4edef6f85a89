"""`Scorer`: what programs are expected to take, by the draft and what was learned on top of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.config import CostModelConfig, SketchConfig
from ansor.cost_model.gbdt import ResidualModel
from ansor.features.extract import extract
from ansor.features.legality import legal
from ansor.features.profile import StageProfile, profile
from ansor.features.rows import Floats
from ansor.program.nest import LoopNest, build_nest
from ansor.program.sketch import Population
from ansor.targets.cpu.draft.draft import Breakdown, draft
from ansor.targets.cuda.draft.draft import GpuBreakdown, draft_for_gpu
from ansor.targets.cuda.legality import legal_on_gpu
from ansor.targets.cuda.machine import Gpu, Machine

Breakdowns = Mapping[str, Breakdown | GpuBreakdown]


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
        hardware: that programs are to run on.
        learned: corrects the draft; without training, it does not.
    """

    def __init__(
        self,
        hardware: Machine,
        config: CostModelConfig,
        sketch_config: SketchConfig,
        learned: ResidualModel,
    ) -> None:
        self.hardware = hardware
        self._config, self._sketch_config = config, sketch_config
        self._model = learned

    def estimate(self, population: Population, with_features: bool | None = None) -> Estimate:
        """Evaluates draft, legality and features; these by default only where trees use them."""
        nest = build_nest(population)
        profiles = profile(nest)
        breakdown = self._draft(nest, profiles) if self._config.use_draft else {}
        features = None
        if self._model.is_trained if with_features is None else with_features:
            features = extract(population, profiles, draft_columns(breakdown))
        drafted = _log_throughput(breakdown, len(population))
        code = _code(breakdown, len(population))
        return Estimate(drafted, code, features, self._legal(nest), nest, _prefetched(profiles))

    def _draft(self, nest: LoopNest, profiles: dict[str, StageProfile]) -> Breakdowns:
        if isinstance(self.hardware, Gpu):
            return draft_for_gpu(nest, profiles, self.hardware)
        return draft(profiles, self.hardware)

    def _legal(self, nest: LoopNest) -> npt.NDArray[np.bool_]:
        if isinstance(self.hardware, Gpu):
            return legal_on_gpu(nest, self.hardware, self._sketch_config.gpu)
        return legal(nest, self.hardware, self._sketch_config)

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


def _log_throughput(breakdowns: Breakdowns, programs: int) -> Floats:
    """`[P]`: log of the draft's throughput, 0 where there is no draft."""
    if not breakdowns:
        return np.zeros(programs, dtype=np.float32)
    drafted: Floats = -np.log(seconds(breakdowns))
    return drafted


def _code(breakdowns: Breakdowns, programs: int) -> Floats:
    """`[P]`: instructions of all stages on a CPU."""
    found = [b.code for b in breakdowns.values() if isinstance(b, Breakdown)]
    code: Floats = np.add.reduce([np.zeros(programs, dtype=np.float32), *found])
    return code


def seconds(breakdowns: Breakdowns) -> Floats:
    """`[P]`: estimated time of each program."""
    total: Floats = np.add.reduce([b.seconds for b in breakdowns.values()])
    return total


def draft_columns(breakdowns: Breakdowns) -> list[list[Floats]]:
    """What the learned model is told of each stage's draft, if any, `[P]` each; on a GPU of its
    kernel's, which stages inside another's loops share."""
    if not breakdowns:
        return []
    total = seconds(breakdowns)
    return [own.columns(total) for own in breakdowns.values()]
