"""What LLVM makes of the loops that a program leaves alone.

It unrolls short loops in full, and turns the loop that runs along memory into vectors where no
vector loop is asked for. Without this, half of all random programs would look far slower than they
are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.cost_model.full_unroll import unrolled_by_llvm, unrolled_by_tvm
from ansor.features.profile import StageProfile
from ansor.features.rows import (
    Bools,
    Floats,
    all_inside,
    at_least,
    from_inside,
    innermost,
    of_loop,
    product,
)
from ansor.hardware.cpu import Hardware

# LLVM may or may not keep the results of a block in registers if it has unrolled the block itself,
# less often around conditions, and where it was to find the vectors, the time is up to 15 times
# what it could have been, unless it has surely unrolled a reduction. The same programs with the
# block spelled out are there to be chosen. Fitted.
_RISK_OF_UNROLLING = 1.1
_RISK_OF_CONDITIONS = 1.3
_RISK_OF_VECTORS = 1.15
_LEAST_LANES = 4.0  # a shorter loop stays scalar
# Elements of a vector that LLVM makes of straight-line code: as many as lie side by side where the
# loop around it is a reduction's, which keeps the sums in registers; else, on average, these.
_SLP_LANES = 2.0


@dataclass(frozen=True, eq=False)
class CompiledLoops:
    """The innermost block of a stage as machine code.

    Attributes:
        unrolled: `[L, P]`: how many copies each loop leaves in the block; 1 for loops that stay.
        trips: `[L, P]`: iterations that each loop keeps outside of it, 1 if it is gone.
        width: `[P]`: elements of the block's vector statements.
        lanes: `[P]`: number of the loop that they run along, -1 for none.
        points: `[P]`: copies of the block's result that a run of the reduction keeps in registers.
        reduction: `[P]`: iterations of that run.
        spelled: `[P]`: whether the block's copies are spelled out in the code that LLVM gets, which
            decides most conditions for each.
        risk: `[P]`: factor on the time, for what LLVM is relied upon to do.
    """

    unrolled: Floats
    trips: Floats
    width: Floats
    lanes: npt.NDArray[np.int64]
    points: Floats
    reduction: Floats
    spelled: npt.NDArray[np.bool_]
    risk: Floats


def compiled_loops(profile: StageProfile, hardware: Hardware) -> CompiledLoops:
    """Goes from the innermost loop outwards and unrolls what is short enough."""
    width = np.ones(profile.extents.shape[1], dtype=np.float32)
    if profile.vector is not None:
        width = profile.extents[profile.vector]
    lanes = np.float32(hardware.lanes(profile.accesses[-1].buffer.item_bytes))
    asked = unrolled_by_tvm(profile)
    alone, barely = unrolled_by_llvm(profile, asked, np.ceil(width / lanes))
    loops: Floats = np.where(asked | alone, profile.extents, np.float32(1))
    unrolled, wide, along = _vectorised(profile, loops, width, lanes)
    trips = _trips(profile, loops, along, wide / width)
    risk = _risk(profile, alone, barely, wide > width)
    copies = (asked & (profile.extents > 1)).any(axis=0)
    spelled = np.logical_and(copies, ~alone.any(axis=0))
    kept = _kept(profile, unrolled, trips)
    return CompiledLoops(unrolled, trips, wide, along, *kept, spelled, risk)


def _risk(
    profile: StageProfile,
    alone: Bools,
    barely: npt.NDArray[np.bool_],
    vectors: npt.NDArray[np.bool_],
) -> Floats:
    """`[P]`: factor on the time, by the loops `[L, P]` and vectors `[P]` that are LLVM's choice,
    and whether the loops, `[P]`, are at the limit of what it unrolls."""
    stage = profile.nest.stage
    unrolling = _RISK_OF_CONDITIONS if stage.has_branch else _RISK_OF_UNROLLING
    risk = np.where(alone.any(axis=0) & bool(stage.reduce), np.float32(unrolling), np.float32(1))
    reduced = (alone & profile.reductions).any(axis=0) & ~barely
    of_vectors = np.where(reduced, np.float32(1), np.float32(_RISK_OF_VECTORS))
    result: Floats = np.where(vectors, of_vectors, risk)
    return result


def _kept(profile: StageProfile, unrolled: Floats, trips: Floats) -> tuple[Floats, Floats]:
    """`[P]` each: points and length of the run of the reduction that stays in registers.

    The run ends at the first loop outwards that goes on to other elements and is not gone, or that
    has a condition inside.
    """
    extents, reduces = profile.extents, profile.reductions
    spatial = profile.others & ~reduces
    goes_on = ~spatial | (trips == 1)
    going = from_inside(np.logical_and, ~profile.guarded) & all_inside(goes_on)
    run = product(going & reduces, extents)
    copies = from_inside(np.multiply, np.where(spatial, unrolled, np.float32(1)))
    whole = of_loop(copies[:1], np.zeros(len(run), dtype=np.int64))  # 1 where there are no loops
    outermost = innermost((going & reduces & (extents > 1))[::-1])
    points = of_loop(copies[::-1], outermost)
    return np.where(run > 1, points, whole), run


def _vectorised(
    profile: StageProfile, unrolled: Floats, width: Floats, lanes: np.float32
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Lets the loop along memory become vectors where it is unrolled, or the first that is not."""
    extents, moves = profile.extents, np.abs(profile.accesses[-1].moves[:-1])
    # LLVM leaves alone what holds vectors already, however short, and reads under a condition.
    free = (width < 2) & (not profile.nest.stage.has_branch)
    reached = all_inside((unrolled > 1) | (extents == 1) | ~profile.others)
    along = free & profile.others & reached & (moves == width) & (extents > 1)
    loop = innermost(along)
    extent, copies = of_loop(extents, loop), of_loop(unrolled, loop)
    whole = np.where(extent >= _LEAST_LANES, lanes, np.float32(1))
    most: Floats = np.where(copies > 1, _slp_lanes(profile, unrolled, lanes), whole)
    more: Floats = np.minimum(extent, np.maximum(most / width, 1))
    chosen = along & (np.arange(len(along))[:, None] == loop)
    out = np.where(chosen, at_least(unrolled / more, 1), unrolled)
    vector = -1 if profile.vector is None else profile.vector
    lane_loop = np.where(more > 1, loop, np.where(width > 1, vector, -1))
    return out, width * more, lane_loop


def _trips(
    profile: StageProfile, loops: Floats, along: npt.NDArray[np.int64], wider: Floats
) -> Floats:
    """`[L, P]`: iterations that are left of each loop; the one `along` which LLVM makes vectors
    `wider` takes so many elements at a time."""
    chosen = profile.others & (np.arange(len(loops))[:, None] == along)
    trips: Floats = np.ceil(profile.extents / np.where(chosen, np.maximum(loops, wider), loops))
    return trips


def _slp_lanes(profile: StageProfile, unrolled: Floats, lanes: np.float32) -> Floats:
    """`[P]`: elements of the vectors that become of straight-line code, at most.

    What decides is the innermost loop that stays: whether it is a reduction's.
    """
    stays = profile.others & (profile.extents > 1) & (unrolled == 1)
    reduced = (stays & all_inside(~stays) & profile.reductions).any(axis=0)
    most: Floats = np.where(reduced, lanes, np.float32(_SLP_LANES))
    return most
