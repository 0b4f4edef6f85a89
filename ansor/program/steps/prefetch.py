"""Steps that prefetch, on CPUs.

A decision chooses `Prefetch`. The other steps always apply: the rows that they prefetch lie in
different pages, and hardware prefetchers stop at the end of a page.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansor.program.steps.base import Phase, Step


@dataclass(frozen=True)
class Prefetch(Step):
    """If `hole` is 1, prefetch the elements of the constant `buffer` that the tiled `stage` reads.

    A part of the buffer whose size is between the two `elements` may be read repeatedly. The next
    part in memory is then prefetched. Otherwise, if at least `run` contiguous elements are read,
    elements at the distance `distance` are prefetched. `line_bytes` is the size of a cache line.
    """

    phase = Phase.AFTER_SCHEDULING

    stage: str
    buffer: str
    elements: tuple[int, int]
    run: int
    distance: int
    line_bytes: int
    hole: str


@dataclass(frozen=True)
class PrefetchPackedRows(Step):
    """Each row that the copy `stage` packs prefetches a later row, line by line of `line_bytes`."""

    phase = Phase.AFTER_SCHEDULING

    stage: str
    line_bytes: int


@dataclass(frozen=True)
class PrefetchOperands(Step):
    """Each tile of the reduction `stage` prefetches the rows of the next tile, or of a later row,
    in the large parameters `buffers`.

    Attributes:
        tile_bytes: the largest tile of an operand.
        far_bytes: least bytes between two uses of a line that is prefetched.
        line_bytes: a cache line.
    """

    phase = Phase.AFTER_SCHEDULING

    stage: str
    buffers: tuple[str, ...]
    tile_bytes: int
    far_bytes: int
    line_bytes: int


@dataclass(frozen=True)
class PrefetchConsumer(Step):
    """Each tile of `stage` prefetches the data that its fused `consumer` reads and writes for it.

    Attributes:
        tile_bytes: the largest tile of an array.
        far_bytes: the size from which an array is prefetched in small groups, during a long
            reduction.
        line_bytes: a cache line.
    """

    phase = Phase.AFTER_SCHEDULING

    stage: str
    consumer: str
    tile_bytes: int
    far_bytes: int
    line_bytes: int
