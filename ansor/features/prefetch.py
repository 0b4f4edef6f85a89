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
    """What a stage reads of an operand without a gap.

    Attributes:
        exists: `[P]`: whether anything is prefetched.
        elements: `[P]`: of what is asked for while others are used: a part that is read again and
            again, or the distance to what is read once.
        run: `[P]`: elements after which the next ones lie elsewhere; infinite for parts.
    """

    exists: Bools
    elements: Floats
    run: Floats


class Operand(NamedTuple):
    """How a stage reads an operand.

    Attributes:
        strides: of each loop that moves the operand, `[P]` elements.
        width: of the panels that it is packed in, `[P]` elements; 0 where it is not.
    """

    strides: Mapping[int, Floats]
    width: Floats | float


def no_part(programs: int) -> PrefetchedPart:
    """Where nothing is prefetched."""
    ones = np.ones(programs, dtype=np.float32)
    return PrefetchedPart(np.zeros(programs, dtype=np.bool_), ones, ones)


def prefetched_part(
    extents: Floats,
    operand: Operand,
    serial: Bools,
    parallel: Bools,
    sizes: npt.NDArray[np.int32],
) -> PrefetchedPart:
    """The largest part of a size that is asked for, or all that is read without a gap: found from
    the innermost loop outwards.

    Args:
        extents: `[L, P]` of the loops.
        operand: what is read.
        serial: `[L, P]`: loops that are executed as such, one iteration after the other.
        parallel: `[L, P]`: loops that are fused and run on all cores.
        sizes: `[4, P]`: least and most elements of a part, least of a run, and the distance; all 0
            where nothing is asked for.
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
