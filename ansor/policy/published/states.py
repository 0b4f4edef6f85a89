"""Programs as inputs of a network."""

from __future__ import annotations

import numpy as np

from ansor.policy.published.network import Floats64
from ansor.program.decision import Decision, IntArray
from ansor.program.sketch import Sketch


class StateTables:
    """Encodes rows of a sketch as numbers between -0.5 and 0.5."""

    def __init__(self, sketch: Sketch) -> None:
        self._tables = [_encoded(decision) for decision in sketch.decisions]

    @property
    def width(self) -> int:
        """Numbers of a state."""
        return sum(table.shape[1] for table in self._tables)

    def of(self, rows: IntArray) -> Floats64:
        """`[P, S] float64`: the states of `rows [P, D]`."""
        parts = [table[rows[:, column]] for column, table in enumerate(self._tables)]
        return np.concatenate([np.empty((len(rows), 0)), *parts], axis=1)


def _encoded(decision: Decision) -> Floats64:
    """`[C, K]`: the share of each loop in a tile, as in NNI; the place of an ordered category; one
    number for each of the other categories."""
    table: Floats64 = decision.table.astype(np.float64)
    if table.shape[1] > 1:
        shares: Floats64 = table / np.maximum(table.prod(axis=1, keepdims=True), 1)
        return shares - 0.5
    if decision.ordered:
        return np.linspace(-0.5, 0.5, decision.size)[:, None]
    return np.eye(decision.size) - 0.5
