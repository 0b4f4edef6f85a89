"""Features of programs whose loops are not known before their schedule runs: their knobs.

Deviation: AutoTVM's default features describe the loops of each lowered candidate. Here the core of
the search runs no schedule. The knobs alone describe a program, as in AutoTVM's feature type
"knob", with the products of the inner factors of tiles.
"""

from __future__ import annotations

import numpy as np

from ansor.features.loop_tables import Floats
from ansor.program.sketch import Population


def knob_features(population: Population) -> Floats:
    """`[P, 1, F] float32`: logarithms of the chosen factors and candidates, and of the products of
    the innermost factors of each tile."""
    columns = [np.zeros((len(population), 1), dtype=np.float32)]  # a schedule may have no knob
    for decision in population.sketch.decisions:
        sizes = np.log2(1.0 + population.values(decision.name))
        columns.append(sizes)
        if sizes.shape[1] > 2:
            factors = population.values(decision.name)[:, :0:-1].astype(np.float64)
            columns.append(np.log2(1.0 + factors.cumprod(axis=1)[:, 1:]))
    features: Floats = np.concatenate(columns, axis=1, dtype=np.float32)
    return features[:, None]


def knob_signature(population: Population) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
    """`[P, K] int32`: equal rows are the same program."""
    values = [population.values(decision.name) for decision in population.sketch.decisions]
    first = np.zeros((len(population), 1), dtype=np.int32)
    return np.concatenate([first, *values], axis=1)
