"""A population of one sketch on its way through an evolution."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ansor.program.sketch import Population, Sketch, concatenate


@dataclass(frozen=True, eq=False)
class Generation:
    """Programs of a sketch.

    Attributes:
        population: the programs.
        best: the best score known of the sketch.
        scores: `[P]`; None if they must be computed again.
        is_settled: whether the last generations brought no gain.
    """

    population: Population
    best: float
    scores: npt.NDArray[np.float32] | None = None
    is_settled: bool = False

    @classmethod
    def of(cls, population: Population, scores: npt.NDArray[np.float32]) -> Generation:
        """Programs that have been scored."""
        return cls(population, float(scores.max(initial=-np.inf)), scores)

    def of_sketch(self, sketch: Sketch) -> Generation:
        """The same with an equal sketch. A generation from another process has a copy of the
        sketch."""
        return replace(self, population=Population(sketch, self.population.choices))

    def joined(self, other: Generation) -> Generation:
        """Both generations together; they have the same sketch, and scores."""
        assert self.scores is not None
        assert other.scores is not None
        return Generation(
            concatenate([self.population, other.population]),
            max(self.best, other.best),
            np.concatenate([self.scores, other.scores]),
        )

    def head(self, count: int) -> Generation:
        """The `count` programs with the best scores, best first; all programs without scores."""
        if self.scores is None:
            return self
        order = np.argsort(-self.scores, kind="stable")[:count]
        return Generation(self.population.take(order), self.best, self.scores[order])

    def split(self, count: int) -> tuple[Generation, Generation]:
        """The first `count` programs, and the others, of a generation with scores."""
        assert self.scores is not None
        numbers = np.arange(len(self.population))
        parts = (numbers[:count], numbers[count:])
        first, rest = (self.of(self.population.take(n), self.scores[n]) for n in parts)
        return first, rest
