"""`RankedPolicy`: AutoTVM's trees with a rank loss and simulated annealing ("xgb-sa")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ansor.config.policies import AnnealingConfig, RankTreesConfig
from ansor.cost_model.rank_trees import RankTrees
from ansor.features.loop_tables import Floats
from ansor.policy.candidate import Candidate
from ansor.policy.published.annealing import Pool, anneal
from ansor.policy.published.knobs import KnobSpace, Points
from ansor.policy.published.row_policy import RowPolicy


@dataclass(eq=False, repr=False)
class RankedPolicy(RowPolicy):
    """Plans of the programs that trees over the knobs rank first; a first plan is random.

    Deviation: AutoTVM measures refused programs, too. Here the annealing remembers more programs
    than a plan has, and random programs replace missing ones.
    """

    sizes: AnnealingConfig = field(default=AnnealingConfig(), kw_only=True)
    trees: RankTreesConfig = field(default=RankTreesConfig(), kw_only=True)
    _space: KnobSpace = field(init=False)
    _chains: Points | None = field(default=None, init=False)  # they continue from plan to plan
    _measured: list[Candidate] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._space = KnobSpace(self.sketches)

    def _observe(self, done: Sequence[Candidate]) -> None:
        self._measured += done

    def _plan(self) -> list[Candidate]:
        if not self.successes or len(self._measured) < self.sizes.plan:
            return self._random(self.sizes.plan)
        fast = self._fast()[: self.sizes.plan - int(self.sizes.random_rate * self.sizes.plan)]
        taken = {c.signature for c in fast}
        return fast + self._random(self.sizes.plan - len(fast), taken)

    def _fast(self) -> list[Candidate]:
        """The new programs that trees rank first, best first."""
        known = self._known()
        model = RankTrees(self.trees, self.sizes.plan, int(self.rng.integers(1 << 31)))
        model.fit(self._space.features(known), self._throughput())
        start = self._chains
        if start is None:
            start = self._space.random(self.sizes.chains, self.rng)
        self._chains, pool = anneal(
            self._space,
            lambda points: model.predict(self._space.features(points)),
            start,
            np.sort(self._space.keys(known)),
            self.rng,
            self.sizes,
        )
        return self._admitted(pool)

    def _admitted(self, pool: Pool) -> list[Candidate]:
        """The programs of a pool that are new and legal, best first."""
        ranked: list[tuple[int, Candidate]] = []
        for number, sketch in enumerate(self.sketches):
            places = np.flatnonzero(pool.points.sketch == number)
            rows = pool.points.rows[places, : len(sketch.decisions)]
            pairs = zip(places, self._considered(sketch, rows), strict=True)
            ranked += [(int(place), c) for place, c in pairs if c]
        return [c for _, c in sorted(ranked, key=lambda pair: pair[0])]

    def _known(self) -> Points:
        """The measured programs."""
        parts = [self._space.points(self.number[c.sketch], c.row[None]) for c in self._measured]
        sketches = np.concatenate([part.sketch for part in parts])
        return Points(sketches, np.concatenate([part.rows for part in parts]))

    def _throughput(self) -> Floats:
        """`[N]`: of the measured programs, relative to the best; 0 for a failure."""
        per_s = np.asarray([1 / (c.latency_s or np.inf) for c in self._measured])
        relative: Floats = (per_s / per_s.max()).astype(np.float32)
        return relative
