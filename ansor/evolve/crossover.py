"""Node-based crossover (Ansor §5.1): a child takes each stage's decisions whole from one parent."""

from __future__ import annotations

import numpy as np

from ansor.program.sketch import Population


def crossover(mothers: Population, fathers: Population, rng: np.random.Generator) -> Population:
    """Returns one child per pair; rows of the two populations are paired in order."""
    owners = [decision.stage for decision in mothers.sketch.decisions]
    stages = list(dict.fromkeys(owners))
    owner = np.asarray([stages.index(name) for name in owners])
    from_father = rng.random((len(mothers), len(stages))) < 0.5
    choices = np.where(from_father[:, owner], fathers.choices, mothers.choices)
    return Population(mothers.sketch, choices.astype(np.int32))
