"""A search policy that is written through the public seams alone: random programs."""

from __future__ import annotations

import numpy as np

from ansor.annotate.sample import sample
from ansor.policy.base import Policy
from ansor.policy.candidate import Candidate, distinct

DRAWN = 64  # programs of each sketch in a round


class RandomPolicy(Policy):
    """Proposes random legal programs, whatever their score is."""

    def propose(self, count: int) -> list[Candidate]:
        batch = distinct(self._drawn(), self.measured)[:count]
        self.exhausted = not batch
        return batch

    @property
    def promise_s(self) -> float:
        return float(np.exp(-max(candidate.score for candidate in self._drawn())))

    def draft_best(self) -> Candidate | None:
        return max(self._drawn(), key=lambda candidate: candidate.score, default=None)

    def _drawn(self) -> list[Candidate]:
        drawn = [
            candidate
            for sketch in self.sketches
            for candidate in self.candidates(sample(sketch, DRAWN, self.rng))
            if np.isfinite(candidate.score)
        ]
        self.rng.shuffle(drawn)  # type: ignore[arg-type]
        return drawn
