"""Random programs of a sketch (Ansor §4.2)."""

from __future__ import annotations

import numpy as np

from ansor.program.sketch import Population, Sketch


def sample(sketch: Sketch, count: int, rng: np.random.Generator) -> Population:
    """Draws `count` programs, every decision uniformly from its table."""
    choices = np.empty((count, len(sketch.decisions)), dtype=np.int32)
    for column, decision in enumerate(sketch.decisions):
        choices[:, column] = rng.integers(0, decision.size, count)
    return Population(sketch, choices)
