"""Which part of an operand is prefetched while another is used: what `ansor.program.prefetch` finds
in one program, for a population at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.features.span import Floats

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PrefetchedPart:
    """What a stage reads again and again of an operand, before it goes on to what lies after it.

    `exists` is `[P] bool`, `elements` `[P]`.
    """

    exists: Bools
    elements: Floats


def no_part(programs: int) -> PrefetchedPart:
    """Where nothing is prefetched."""
    return PrefetchedPart(np.zeros(programs, dtype=np.bool_), np.ones(programs, dtype=np.float32))


def prefetched_part(
    extents: Floats,
    strides: Mapping[int, Floats],
    serial: Bools,
    parallel: Bools,
    sizes: npt.NDArray[np.int32],
) -> PrefetchedPart:
    """The largest part of a size that is asked for: found from the innermost loop outwards.

    Args:
        extents: `[L, P]` of the loops.
        strides: of each loop that moves the operand, `[P]` elements.
        serial: `[L, P]`: loops that are executed as such, one iteration after the other.
        parallel: `[L, P]`: loops that are fused and run on all cores.
        sizes: `[2, P]`: least and most elements, all 0 where nothing is asked for.
    """
    count = extents.shape[1]
    run, elements = np.ones(count, dtype=np.float32), np.ones(count, dtype=np.float32)
    going, repeats, exists = (np.full(count, value) for value in (True, False, False))
    for number in reversed(range(len(extents))):
        live = extents[number] > 1
        stride = strides.get(number, np.zeros(count, dtype=np.float32))
        moving = live & (stride != 0)
        goes_on = going & moving & (stride == run)
        here = goes_on & repeats & (sizes[0] <= run) & (run <= sizes[1])
        exists, elements = exists | here, np.where(here, run, elements)
        repeats = (repeats & ~moving) | (live & ~moving & serial[number])
        going = going & ~(moving & ~goes_on) & ~(live & parallel[number])
        run = np.where(goes_on, run * extents[number], run)
    return PrefetchedPart(exists, elements)
