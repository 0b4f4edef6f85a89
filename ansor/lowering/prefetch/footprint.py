"""What nested loops touch of an array."""

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
    """Rows of the same length, none of which overlaps another.

    Attributes:
        buffer: that they are part of.
        first: number of the first element.
        elements: of a row, without a gap.
        rows: how often, and how many elements apart, from the farthest apart to the nearest.
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
        """Of all rows."""
        return self.count * int(self.buffer.dtype.itemsize)

    def lines(self, share: float, line_bytes: int) -> Lines:
        """All of them, row by row, to be asked for in that share of a loop."""
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
    """What is touched at `indices` while loops go round; None if that is not in rows.

    Args:
        loops: all around the access.
        inside: those of them that go round.
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
    """Elements of a row, and the rows, that loops of these steps and extents make."""
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
