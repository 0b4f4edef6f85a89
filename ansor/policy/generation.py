"""A population of one sketch on its way through an evolution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.program.sketch import Population


@dataclass(frozen=True, eq=False)
class Generation:
    """Programs of a sketch.

    Attributes:
        population: the programs.
        best: the best score known of the sketch.
        scores: `[P]`; None where they have to be computed anew.
    """

    population: Population
    best: float
    scores: npt.NDArray[np.float32] | None = None

    @classmethod
    def of(cls, population: Population, scores: npt.NDArray[np.float32]) -> Generation:
        """Programs that have been scored."""
        return cls(population, float(scores.max(initial=-np.inf)), scores)
