"""Rows of a sketch: random ones (in a small space none twice), and all rows in order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ansor.annotate.sample import sample
from ansor.config.policies import ROW_SEARCH
from ansor.program.decision import IntArray
from ansor.program.sketch import Sketch


def numbered_rows(sketch: Sketch, first: int, count: int) -> IntArray:
    """`[count, D] int32`: rows `first` to ``first + count - 1`` of the enumeration of a space.

    Its first decision varies fastest. The numbers may exceed 64 bits.
    """
    rows = np.empty((count, len(sketch.decisions)), dtype=np.int32)
    carry: npt.NDArray[np.int64] = np.arange(count, dtype=np.int64)
    for column, decision in enumerate(sketch.decisions):
        first, digit = divmod(first, decision.size)
        carry, rows[:, column] = np.divmod(carry + digit, decision.size)
    return rows


class RandomRows:
    """Draws the programs of a sketch uniformly; of a space that can be listed, none twice."""

    def __init__(self, sketch: Sketch, rng: np.random.Generator) -> None:
        self._sketch, self._rng, self._drawn = sketch, rng, 0
        is_listed = sketch.space_size <= ROW_SEARCH.listed
        self._order = rng.permutation(sketch.space_size) if is_listed else None

    def draw(self, count: int) -> IntArray:
        """`[P, D] int32`: up to `count` rows; none at the end of a listed space."""
        if self._order is None:
            return sample(self._sketch, count, self._rng).choices
        numbers = self._order[self._drawn : self._drawn + count]
        self._drawn += len(numbers)
        rows = np.empty((len(numbers), len(self._sketch.decisions)), dtype=np.int32)
        for column, decision in enumerate(self._sketch.decisions):
            numbers, rows[:, column] = np.divmod(numbers, decision.size)
        return rows
