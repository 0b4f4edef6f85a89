"""The part of an operand that is prefetched while another part is used, for a population.

`ansor.lowering.prefetch.constant_operands` does the same for one program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ansor.features.loop_tables import Floats

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PrefetchedPart:
    """The contiguous part of an operand that a stage prefetches.

    Attributes:
        exists: `[P]`: whether anything is prefetched.
        elements: `[P]`: elements of a part that is read repeatedly; the distance of prefetches if
            elements are read once.
        run: `[P]`: contiguous elements; infinite for parts that are read repeatedly.
    """

    exists: Bools
    elements: Floats
    run: Floats


class Operand(NamedTuple):
    """The reads of an operand by a stage.

    Attributes:
        strides: of each loop that moves the operand, `[P]` elements.
        width: of its packed panels, `[P]` elements; 0 without packing.
    """

    strides: Mapping[int, Floats]
    width: Floats | float


def no_part(programs: int) -> PrefetchedPart:
    """The part of programs that prefetch nothing."""
    ones = np.ones(programs, dtype=np.float32)
    return PrefetchedPart(np.zeros(programs, dtype=np.bool_), ones, ones)


def prefetched_part(
    extents: Floats,
    operand: Operand,
    serial: Bools,
    parallel: Bools,
    sizes: npt.NDArray[np.int32],
) -> PrefetchedPart:
    """The largest repeated part within the sizes, or else the whole contiguous run.

    The search goes from the innermost loop outwards.

    Args:
        extents: `[L, P]` of the loops.
        operand: strides and packing of the operand.
        serial: `[L, P]`: loops that remain loops of the machine code.
        parallel: `[L, P]`: loops that are fused and run on all cores.
        sizes: `[4, P]`: least and most elements of a part, least elements of a run, and the
            distance; all 0 without prefetches.
    """
    count, (least, most, least_run, distance) = extents.shape[1], sizes
    run, elements, streamed = (np.ones(count, dtype=np.float32) for _ in range(3))
    going, repeats, repeated = (np.full(count, value) for value in (True, False, False))
    for number in reversed(range(len(extents))):
        live = extents[number] > 1
        stride = operand.strides.get(number, np.zeros(count, dtype=np.float32))
        moving = live & (stride != 0)
        within = (stride >= operand.width) | (operand.width % (run * extents[number]) == 0)
        goes_on = going & moving & (stride == run) & within
        here = goes_on & repeats & (least <= run) & (run <= most)
        repeated, elements = repeated | here, np.where(here, run, elements)
        repeats = (repeats & ~moving) | (live & ~moving & serial[number])
        going = going & ~(moving & ~goes_on) & ~(live & parallel[number])
        run = np.where(goes_on, run * extents[number], run)
        streamed = np.where(goes_on & serial[number], run, streamed)
    exists = repeated | ((streamed >= least_run) & (least_run > 0))
    ahead = np.where(repeated, elements, distance).astype(np.float32)
    return PrefetchedPart(exists, ahead, np.where(repeated, np.float32(np.inf), streamed))
