"""Random programs of a sketch (Ansor §4.2), or all of them."""

from __future__ import annotations

import numpy as np

from ansor.program.sketch import Population, Sketch


def sample(sketch: Sketch, count: int, rng: np.random.Generator) -> Population:
    """Draws `count` programs, every decision uniformly from its table."""
    choices = np.empty((count, len(sketch.decisions)), dtype=np.int32)
    for column, decision in enumerate(sketch.decisions):
        choices[:, column] = rng.integers(0, decision.size, count)
    return Population(sketch, choices)


def everything(sketch: Sketch) -> Population:
    """All programs of a small sketch, in the order of their choices."""
    sizes = [decision.size for decision in sketch.decisions]
    choices = np.indices(sizes, dtype=np.int32).reshape(len(sizes), sketch.space_size).T
    return Population(sketch, np.ascontiguousarray(choices))
