"""`GeneticPolicy`: AutoTVM's genetic algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ansor.annotate.sample import sample
from ansor.config.policies import GeneticConfig
from ansor.features.loop_tables import Floats
from ansor.policy.candidate import Candidate
from ansor.policy.published.row_policy import RowPolicy
from ansor.program.decision import IntArray
from ansor.program.sketch import Sketch


@dataclass(eq=False, repr=False)
class GeneticPolicy(RowPolicy):
    """Generations of one-point crossover and mutation; the genes are the choices of a program.

    Deviation: AutoTVM has one template. Here both parents of a child have the same sketch.
    """

    sizes: GeneticConfig = field(default=GeneticConfig(), kw_only=True)
    elites: list[Candidate] = field(default_factory=list, init=False)  # fastest first
    _generation: list[Candidate] = field(default_factory=list, init=False)  # that succeeded

    def _observe(self, done: Sequence[Candidate]) -> None:
        self._generation += [c for c in done if c.latency_s is not None]

    def _plan(self) -> list[Candidate]:
        parents = sorted([*self.elites, *self._generation], key=lambda c: c.latency_s or np.inf)
        self.elites, self._generation = parents[: self.sizes.elites], []
        new = self._until_new(self._children(parents), self._changed) if parents else []
        return new + self._random(self.sizes.population - len(new), {c.signature for c in new})

    def _children(self, parents: Sequence[Candidate]) -> dict[Sketch, IntArray]:
        """Rows of the next generation by their sketch."""
        fitness = _fitness(parents)
        drawn = self.rng.choice(len(parents), self.sizes.population, p=fitness)
        children = {}
        for sketch in self.sketches:
            count = sum(parents[number].sketch is sketch for number in drawn)
            if count:
                mates = [p for p in parents if p.sketch is sketch]
                children[sketch] = self._mutated(sketch, self._crossed(mates, count))
        return children

    def _crossed(self, parents: Sequence[Candidate], count: int) -> IntArray:
        """`[count, D] int32`: the head of one parent and the tail of another one, which are drawn
        in proportion to their fitness."""
        rows, fitness = np.stack([p.row for p in parents]), _fitness(parents)
        most = min(2, len(parents))
        pairs = [
            self.rng.choice(len(parents), most, replace=False, p=fitness) for _ in range(count)
        ]
        first, second = rows[[pair[0] for pair in pairs]], rows[[pair[-1] for pair in pairs]]
        genes = np.arange(rows.shape[1])
        points = self.rng.integers(0, max(len(genes), 1), count)
        return np.where(genes < points[:, None], first, second)

    def _mutated(self, sketch: Sketch, rows: IntArray) -> IntArray:
        """`[P, D] int32`: the rows with some genes drawn anew."""
        mutates = self.rng.random(rows.shape) < self.sizes.mutation_rate
        return np.where(mutates, sample(sketch, len(rows), self.rng).choices, rows)

    def _changed(self, sketch: Sketch, rows: IntArray) -> IntArray:
        """`[P, D] int32`: the rows with one random gene drawn anew."""
        genes = self.rng.integers(0, rows.shape[1], len(rows))
        changes = np.arange(rows.shape[1]) == genes[:, None]
        return np.where(changes, sample(sketch, len(rows), self.rng).choices, rows)


def _fitness(programs: Sequence[Candidate]) -> Floats:
    """`[P]`: probability of each program to be a parent, proportional to its throughput."""
    throughput = np.asarray([1 / (c.latency_s or np.inf) for c in programs])
    shares: Floats = throughput / throughput.sum()
    return shares
