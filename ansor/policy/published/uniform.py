"""`UniformPolicy` and `GridPolicy`: random programs, and all programs in order (AutoTVM's tuners
`random` and `gridsearch`)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ansor.config.policies import ROW_SEARCH
from ansor.policy.candidate import Candidate
from ansor.policy.published.random_rows import numbered_rows
from ansor.policy.published.row_policy import RowPolicy
from ansor.program.decision import IntArray
from ansor.program.sketch import Sketch


class UniformPolicy(RowPolicy):
    """Uniformly random programs, none twice."""

    def _plan(self) -> list[Candidate]:
        return self._random(ROW_SEARCH.sample)


@dataclass(eq=False, repr=False)
class GridPolicy(RowPolicy):
    """All programs in order; the sketches take turns, block by block.

    Deviation: AutoTVM measures refused programs, too. Here a long run of them is postponed, because
    limits and the filter refuse whole regions of a space.
    """

    _grids: list[_Grid] = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._grids = [_Grid(sketch) for sketch in self.sketches]

    def _plan(self) -> list[Candidate]:
        plan: dict[bytes, Candidate] = {}
        while self._grids and len(plan) < ROW_SEARCH.sample:
            grid = self._grids.pop(0)
            fresh = [c for c in self._considered(grid.sketch, grid.block(), plan) if c]
            grid.note(bool(fresh))
            self._grids += [grid] if grid.ranges else []
            plan |= {c.signature: c for c in fresh}
        return list(plan.values())


class _Grid:
    """The remaining part of the enumeration of a space.

    Attributes:
        sketch: of the space.
        ranges: first numbers and ends of the remaining parts, in order.
    """

    def __init__(self, sketch: Sketch) -> None:
        self.sketch, self.ranges = sketch, [(0, sketch.space_size)]
        self._refused = 0  # blocks since the last new program

    def block(self) -> IntArray:
        """`[P, D] int32`: the next rows, more of them after refused ones."""
        (first, end), *later = self.ranges
        most = min(ROW_SEARCH.sample << min(self._refused, 32), ROW_SEARCH.largest)
        count = min(most, end - first)
        self.ranges = [(first + count, end), *later] if first + count < end else later
        return self._rows(first, count)

    def note(self, has_new: bool) -> None:
        """Takes in whether the block had a new program; postpones half a range that has none."""
        self._refused = 0 if has_new else self._refused + 1
        if self._refused >= ROW_SEARCH.draws and self.ranges:
            (first, end), *later = self.ranges
            middle = (first + end) // 2
            halves = [(middle, end), *later, (first, middle)]
            self.ranges = [(a, b) for a, b in halves if a < b]

    def _rows(self, first: int, count: int) -> IntArray:
        """The rows of an enumeration that begins with untiled loops, as AutoTVM's, and the first of
        all categories."""
        rows = numbered_rows(self.sketch, first, count)
        last = [d.size - 1 if d.table.shape[1] > 1 else 0 for d in self.sketch.decisions]
        is_tile = np.asarray([d.table.shape[1] > 1 for d in self.sketch.decisions], dtype=np.bool_)
        return np.where(is_tile, np.asarray(last, dtype=np.int32) - rows, rows)
