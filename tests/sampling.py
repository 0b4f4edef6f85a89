"""Random programs for tests: plain draws from the tables, legal by construction."""

from __future__ import annotations

import numpy as np

from ansor.program.sketch import Population, Sketch


def sample(sketch: Sketch, count: int, rng: np.random.Generator) -> Population:
    """`count` random programs of `sketch`."""
    columns = [rng.integers(0, decision.size, count) for decision in sketch.decisions]
    choices = np.stack(columns, axis=1) if columns else np.zeros((count, 0))
    return Population(sketch, choices.astype(np.int32))
