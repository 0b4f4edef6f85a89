"""The elements of an array that nested loops touch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import sym

from ansor.lowering.accesses import position_of, step_of, zero_of
from ansor.lowering.prefetch.emit import Lines, prefetch_line
from ansor.lowering.statements import substitute_variables


@dataclass(frozen=True)
class Slab:
    """Rows of the same length that do not overlap.

    Attributes:
        buffer: that contains them.
        first: number of the first element.
        elements: contiguous elements of a row.
        rows: pairs of a number of rows and their distance in elements, largest distance first.
        is_write: whether they are written.
    """

    buffer: Any
    first: Any
    elements: int
    rows: tuple[tuple[int, int], ...]
    is_write: bool

    @property
    def count(self) -> int:
        """Elements of all rows."""
        return self.elements * math.prod(count for count, _ in self.rows)

    @property
    def size_bytes(self) -> int:
        """Bytes of all rows."""
        return self.count * int(self.buffer.dtype.itemsize)

    def lines(self, share: float, line_bytes: int) -> Lines:
        """The cache lines of all rows, to be prefetched in a share of a loop's iterations."""
        per_line = line_bytes // self.buffer.dtype.itemsize
        per_row = -(-self.elements // per_line)
        digits = (*self.rows, (per_row, per_line))

        def ask(number: Any) -> Any:
            element, rest = self.first, number
            for place, (count, step) in reversed(tuple(enumerate(digits))):
                element = element + (rest % count if place else rest) * step
                rest = rest // count
            return prefetch_line(self.buffer, element, self.is_write)

        rows = math.prod(count for count, _ in self.rows)
        return Lines(per_row * rows, ask, per_row, share)


def buffer_bytes(buffer: Any) -> int:
    """Bytes of an array."""
    return math.prod(int(extent) for extent in buffer.shape) * int(buffer.dtype.itemsize)


def slab_of(
    buffer: Any, indices: Sequence[Any], is_write: bool, loops: Sequence[Any], inside: Sequence[Any]
) -> Slab | None:
    """The elements that loops touch at `indices`; None if they do not form rows.

    Args:
        loops: all loops around the access.
        inside: the loops among them that iterate.
    """
    position = position_of(indices, buffer)
    steps = list[tuple[int, int]]()
    for number, loop in enumerate(loops):
        if any(loop.loop_var.same_as(other.loop_var) for other in inside):
            step = step_of(position, loops, number)
            if step is None:
                return None
            steps.append((step, int(loop.extent)))
    shape = _rows(steps)
    if shape is None:
        return None
    start = substitute_variables(position, {loop.loop_var: zero_of(loop) for loop in inside})
    first = sym.Analyzer().simplify(start)
    return Slab(buffer, first, *shape, is_write)


def _rows(steps: Sequence[tuple[int, int]]) -> tuple[int, tuple[tuple[int, int], ...]] | None:
    """Elements of a row, and the rows, for the steps and extents of loops."""
    run, span, rows = 1, 1, list[tuple[int, int]]()
    for step, extent in sorted(steps):
        if step == 0:
            continue
        if step < span:
            return None
        if step == run and not rows:
            run *= extent
        else:
            rows.append((extent, step))
        span += (extent - 1) * step
    return run, tuple(reversed(rows))
