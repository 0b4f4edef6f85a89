"""The neighbours of a program, for a coordinate descent.

After "Explore as a Storm, Exploit as a Raindrop" (2024): a sequence of single steps leads from a
good program to the best one.

Deviation: Ansor has no descent; TBG.1 takes 260 µs without and 198 µs with it (Zen 4).
"""

from __future__ import annotations

import numpy as np

from ansor.program.decision import IntArray
from ansor.program.sketch import Population, Sketch


def neighbourhood(sketch: Sketch, row: IntArray) -> Population:
    """Returns every distinct program that differs from `row [D]` by one decision's neighbour."""
    found = []
    for column, decision in enumerate(sketch.decisions):
        for choice in np.unique(decision.neighbours[row[column]]):
            if choice != row[column]:
                changed = row.copy()
                changed[column] = choice
                found.append(changed)
    empty = np.empty((0, len(row)), dtype=np.int32)
    return Population(sketch, np.stack(found).astype(np.int32) if found else empty)
