"""`BestFirstPolicy`: G-BFS, a greedy best-first search (Zhang et al., arXiv 1909.10616, 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np

from ansor.config.policies import BestFirstConfig
from ansor.policy.candidate import Candidate
from ansor.policy.published.row_policy import RowPolicy


@dataclass(eq=False, repr=False)
class BestFirstPolicy(RowPolicy):
    """G-BFS: a queue of measured programs; the fastest is expanded by some of its neighbours.

    Deviation: the original begins with one untiled program and ends with an empty queue. Here each
    sketch has an untiled program. When the queue is empty, programs with neighbours that were left
    out are expanded again, and then the search continues from random programs.
    """

    sizes: BestFirstConfig = field(default=BestFirstConfig(), kw_only=True)
    # Latency, order of measurement, and program; a failed program comes last.
    _queue: list[tuple[float, int, Candidate]] = field(default_factory=list, init=False)
    _again: list[tuple[float, int, Candidate]] = field(default_factory=list, init=False)
    _count: int = field(default=0, init=False)

    def _plan(self) -> list[Candidate]:
        if not self.trials:
            return self._untiled() or self._random(self.sizes.neighbours)
        while self._queue or self._again:
            if not self._queue:
                self._queue, self._again = self._again, []
                heapify(self._queue)
            entry = heappop(self._queue)
            new = self._neighbours(entry[2])
            if len(new) > self.sizes.neighbours:
                self._again.append(entry)
            if new:
                return new[: self.sizes.neighbours]
        return self._random(self.sizes.neighbours)

    def _observe(self, done: Sequence[Candidate]) -> None:
        for candidate in done:
            latency_s = np.inf if candidate.latency_s is None else candidate.latency_s
            heappush(self._queue, (latency_s, self._count, candidate))
            self._count += 1

    def _neighbours(self, program: Candidate) -> list[Candidate]:
        """The unmeasured programs one step away, in random order."""
        near = self._graph(program.sketch).neighbours(program.row)
        rows = self.rng.permutation(near)
        return [c for c in self._considered(program.sketch, rows) if c]
