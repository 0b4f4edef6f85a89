"""What LLVM makes of the loops that a program leaves alone.

It unrolls short loops in full, and turns the loop that runs along memory into vectors where no
vector loop is asked for. Without this, half of all random programs would look far slower than they
are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ansor.features.profile import StageProfile
from ansor.features.span import Floats
from ansor.hardware.cpu import Hardware

Bools = npt.NDArray[np.bool_]

# Instructions of a block that LLVM makes by unrolling short loops in full; level 3 stops at 300,
# before it has dropped what turns out to be the same. Fitted at that level on random programs of
# seven operators, what is below on programs of 48; level 2, now in use, stops at 150.
_FULL_UNROLL = 500.0
_BROADCAST = 3.0  # instructions that spread one element over a vector
# LLVM may or may not keep the results of a block in registers if it has unrolled the block itself,
# and where it was to find the vectors, the time is up to 15 times what it could have been. The
# same programs with the block spelled out are there to be chosen.
_RISK_OF_UNROLLING = 1.1
_RISK_OF_VECTORS = 1.3
_LEAST_LANES = 4.0  # a shorter loop stays scalar
# Elements of a vector that LLVM makes of straight-line code: as many as lie side by side where the
# loop around it is a reduction's, which keeps the sums in registers; else, on average, these.
_SLP_LANES = 2.0
_SLP_LANES_ALONG = 4.0  # where the loop around it goes on along memory


@dataclass(frozen=True, eq=False)
class CompiledLoops:
    """The innermost block of a stage as machine code.

    Attributes:
        unrolled: `[L, P]`: how many copies each loop leaves in the block; 1 for loops that stay.
        width: `[P]`: elements of the block's vector statements.
        lanes: `[P]`: number of the loop that they run along, -1 for none.
        points: `[P]`: copies of the block's result that a run of the reduction keeps in registers.
        reduction: `[P]`: iterations of that run.
        risk: `[P]`: factor on the time, for what LLVM is relied upon to do.
    """

    unrolled: Floats
    width: Floats
    lanes: npt.NDArray[np.int64]
    points: Floats
    reduction: Floats
    risk: Floats


def compiled_loops(profile: StageProfile, hardware: Hardware) -> CompiledLoops:
    """Goes from the innermost loop outwards and unrolls what is short enough."""
    width = np.ones(profile.extents.shape[1], dtype=np.float32)
    if profile.vector is not None:
        width = profile.extents[profile.vector]
    lanes = np.float32(hardware.lanes(profile.accesses[-1].buffer.item_bytes))
    asked = unrolled_by_tvm(profile)
    alone = _unrolled_by_llvm(profile, asked, np.ceil(width / lanes))
    loops: Floats = np.where(asked | alone, profile.extents, np.float32(1))
    unrolled, wide, along = _vectorised(profile, loops, width, lanes)
    risky = alone.any(axis=0) & bool(profile.nest.stage.reduce)
    risk = np.where(risky, np.float32(_RISK_OF_UNROLLING), np.float32(1))
    risk = np.where(wide > width, np.float32(_RISK_OF_VECTORS), risk)
    return CompiledLoops(unrolled, wide, along, *_kept(profile, unrolled), risk)


def unrolled_by_tvm(profile: StageProfile) -> Bools:
    """`[L, P]`: the register tile, and the loops around it as far as the sketch allows."""
    tile = profile.nest.unrolled[list(profile.active)]
    return _unrolled(profile, tile, np.float32(1), profile.nest.unroll_most)


def _unrolled_by_llvm(profile: StageProfile, asked: Bools, vectors: Floats) -> Bools:
    """`[L, P]`: what is short enough, besides what is asked for."""
    size = vectors * _size(profile)
    found = _unrolled(profile, asked, size, np.float32(_FULL_UNROLL))
    return found & ~asked & (profile.extents > 1)


def _unrolled(profile: StageProfile, asked: Bools, size: Any, most: Any) -> Bools:
    """`[L, P]`: `asked`, and from the innermost loop outwards what leaves at most `most` copies of
    a statement of `size`, up to the first loop that stays."""
    unrolled: Bools = asked.copy()
    count = np.where(asked, profile.extents, 1).prod(axis=0) * size
    guarded = profile.nest.guarded[list(profile.active)]
    inside = np.ones(len(count), dtype=np.bool_)  # all loops further in are unrolled
    for number in reversed(range(len(asked))):
        if number != profile.vector:
            extent = profile.extents[number]
            more = inside & ~asked[number] & ~guarded[number] & (count * extent <= most)
            count = np.where(more, count * extent, count)
            unrolled[number] |= more
            inside = inside & (unrolled[number] | (extent == 1))
    return unrolled


def _size(profile: StageProfile) -> Floats:
    """`[P]`: instructions of a statement."""
    ops = profile.nest.stage.ops
    size = ops.float_add + ops.float_mul + ops.float_cmp + ops.float_div + ops.select + 2
    total = np.full(profile.extents.shape[1], size, dtype=np.float32)
    for access in profile.accesses[:-1]:
        moves = access.strides.get(profile.vector) if profile.vector is not None else None
        broadcast = np.True_ if moves is None else moves == 0
        total += np.where(broadcast, np.float32(_BROADCAST), 1)
    return total


def _kept(profile: StageProfile, unrolled: Floats) -> tuple[Floats, Floats]:
    """`[P]` each: points and length of the run of the reduction that stays in registers.

    The run ends at the first loop outwards that goes on to other elements and is not unrolled, or
    that has a condition inside.
    """
    ones = np.ones(unrolled.shape[1], dtype=np.float32)
    guarded = profile.nest.guarded[list(profile.active)]
    points, so_far, run, going = ones, ones, ones, ones.astype(np.bool_)
    for number in reversed(range(len(unrolled))):
        extent = profile.extents[number]
        going = going & ~guarded[number]
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
    # LLVM leaves alone what holds vectors already, however short, and reads under a condition.
    free = (width < 2) & (not profile.nest.stage.has_branch)
    reached = np.ones(len(width), dtype=np.bool_)
    strides = profile.accesses[-1].strides
    slp = _slp_lanes(profile, unrolled, lanes)
    for number in reversed(range(len(unrolled))):
        if number == profile.vector:
            continue
        extent = profile.extents[number]
        if number in strides:
            along = free & reached & (np.abs(strides[number]) == wide) & (extent > 1)
            straight = unrolled[number] > 1
            whole = np.where(extent >= _LEAST_LANES, lanes, np.float32(1))
            most = np.where(straight, slp, whole)
            more = np.where(along, np.minimum(extent, np.maximum(most / wide, 1)), 1)
            wide = wide * more
            lane_loop = np.where((lane_loop < 0) & (more > 1), number, lane_loop)
            out[number] = np.where(straight, np.maximum(out[number] / more, 1), 1)
            free = free & ~along
        reached = reached & ((unrolled[number] > 1) | (extent == 1))
    return out, wide, lane_loop


def _slp_lanes(profile: StageProfile, unrolled: Floats, lanes: np.float32) -> Floats:
    """`[P]`: elements of the vectors that become of straight-line code, at most.

    What decides is the innermost loop that stays: a reduction's, one along memory, or another.
    """
    strides = profile.accesses[-1].strides
    found = np.full(unrolled.shape[1], np.float32(_SLP_LANES))
    side_by_side = np.ones_like(found)
    inside = np.ones(len(found), dtype=np.bool_)  # no loop further in has stayed
    for number in reversed(range(len(unrolled))):
        extent = profile.extents[number]
        first = inside & (extent > 1) & (unrolled[number] == 1) & (number != profile.vector)
        if _is_reduction(profile, number):
            found = np.where(first, lanes, found)
        elif number in strides:
            along = np.abs(strides[number]) == side_by_side
            found = np.where(first & along, np.float32(_SLP_LANES_ALONG), found)
            side_by_side = np.where(inside & along, side_by_side * extent, side_by_side)
        inside &= ~first
    return found
