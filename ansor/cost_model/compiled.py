"""What LLVM makes of the loops that a program leaves alone.

It unrolls short loops in full, and turns the loop that runs along memory into vectors where no
vector loop is asked for. Without this, half of all random programs would look far slower than they
are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.features.profile import Floats, StageProfile
from ansor.hardware.cpu import Hardware

# Vector statements that LLVM unrolls in full. Fitted on random programs of eight operators.
_FULL_UNROLL = 64.0
_VECTOR_STEPS = 16.0  # of a reduction inside a loop that still becomes vectors
_LEAST_LANES = 4.0  # a shorter loop stays scalar
_SLP_LANES = 2.0  # elements of a vector made of straight-line code, on average


@dataclass(frozen=True, eq=False)
class CompiledLoops:
    """The innermost block of a stage as machine code.

    Attributes:
        unrolled: `[L, P]`: how many copies each loop leaves in the block; 1 for loops that stay.
        width: `[P]`: elements of the block's vector statements.
        lanes: `[P]`: number of the loop that they run along, -1 for none.
        points: `[P]`: copies of the block's result that a run of the reduction keeps in registers.
        reduction: `[P]`: iterations of that run.
    """

    unrolled: Floats
    width: Floats
    lanes: npt.NDArray[np.int64]
    points: Floats
    reduction: Floats


def compiled_loops(profile: StageProfile, hardware: Hardware) -> CompiledLoops:
    """Goes from the innermost loop outwards and unrolls what is short enough."""
    asked = profile.nest.unrolled[list(profile.active)]
    unrolled: Floats = np.where(asked, profile.extents, np.float32(1))
    width = np.ones(profile.extents.shape[1], dtype=np.float32)
    if profile.vector is not None:
        width = profile.extents[profile.vector]
    lanes = hardware.lanes(profile.accesses[-1].buffer.item_bytes)
    count = unrolled.prod(axis=0) * np.ceil(width / np.float32(lanes))
    inside = np.ones(len(width), dtype=np.bool_)  # all loops further in are unrolled
    for number in reversed(range(len(unrolled))):
        extent = profile.extents[number]
        if number != profile.vector and not asked[number].all():
            fits = inside & (count * extent <= np.float32(_FULL_UNROLL)) & ~asked[number]
            unrolled[number] = np.where(fits, extent, unrolled[number])
            count = np.where(fits, count * extent, count)
            inside = inside & (fits | asked[number] | (extent == 1))
    unrolled, width, along = _vectorised(profile, unrolled, width, np.float32(lanes))
    return CompiledLoops(unrolled, width, along, *_kept(profile, unrolled))


def _kept(profile: StageProfile, unrolled: Floats) -> tuple[Floats, Floats]:
    """`[P]` each: points and length of the run of the reduction that stays in registers.

    The run ends at the first loop outwards that goes on to other elements and is not unrolled.
    """
    ones = np.ones(unrolled.shape[1], dtype=np.float32)
    points, so_far, run, going = ones, ones, ones, ones.astype(np.bool_)
    for number in reversed(range(len(unrolled))):
        extent = profile.extents[number]
        if _is_reduction(profile, number):
            run = np.where(going, run * extent, run)
            points = np.where(going & (extent > 1), so_far, points)
        elif number != profile.vector:
            so_far = so_far * unrolled[number]
            going = going & ((extent == 1) | (unrolled[number] > 1))
    return np.where(run > 1, points, so_far), run


def _is_reduction(profile: StageProfile, number: int) -> bool:
    loop = profile.active[number]
    return profile.nest.loops[loop].reduce and loop >= profile.nest.num_host


def _vectorised(
    profile: StageProfile, unrolled: Floats, width: Floats, lanes: np.float32
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Lets the loop along memory become vectors where it is unrolled, or the first that is not."""
    out, wide = unrolled.copy(), width
    vector = -1 if profile.vector is None else profile.vector
    lane_loop = np.where(width > 1, vector, -1)
    # LLVM leaves alone what holds vectors already, however short.
    free, reached = width < 2, np.ones(len(width), dtype=np.bool_)
    steps = np.ones(len(width), dtype=np.float32)  # of the reduction, further in
    strides = profile.accesses[-1].strides
    for number in reversed(range(len(unrolled))):
        if number == profile.vector:
            continue
        extent = profile.extents[number]
        if number in strides:
            along = free & reached & (np.abs(strides[number]) == wide) & (extent > 1)
            along = along & (steps <= np.float32(_VECTOR_STEPS))
            straight = unrolled[number] > 1
            whole = np.where(extent >= _LEAST_LANES, lanes, np.float32(1))
            most = np.where(straight, np.float32(_SLP_LANES), whole)
            more = np.where(along, np.minimum(extent, np.maximum(most / wide, 1)), 1)
            wide = wide * more
            lane_loop = np.where((lane_loop < 0) & (more > 1), number, lane_loop)
            out[number] = np.where(straight, np.maximum(out[number] / more, 1), 1)
            free = free & ~along
        if _is_reduction(profile, number):
            steps = steps * extent
        reached = reached & ((unrolled[number] > 1) | (extent == 1))
    return out, wide, lane_loop
