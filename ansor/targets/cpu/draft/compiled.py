"""LLVM's transformations of the loops that a program neither unrolls nor vectorises.

LLVM unrolls short loops in full. It vectorises the loop along memory if the program has no vector
loop. Without these transformations, the draft overestimates half of all random programs by far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.features.loop_tables import (
    Bools,
    Floats,
    all_inside,
    at_least,
    from_inside,
    innermost,
    masked_product,
    of_loop,
)
from ansor.features.profile import StageProfile
from ansor.targets.cpu.draft.constants import (
    CompilerConstants,
    DraftConstants,
    OverlapConstants,
)
from ansor.targets.cpu.draft.full_unroll import unrolled_by_llvm, unrolled_by_tvm
from ansor.targets.cpu.machine import Hardware


@dataclass(frozen=True, eq=False)
class CompiledLoops:
    """The innermost block of a stage as machine code.

    Attributes:
        unrolled: `[L, P]`: copies that each loop leaves in the block; 1 for a loop that remains.
        trips: `[L, P]`: iterations of each loop outside the block; 1 for a loop without any.
        width: `[P]`: elements of the block's vector statements.
        lanes: `[P]`: number of the vectorised loop, -1 for none.
        points: `[P]`: copies of the block's result that stay in registers during a run of the
            reduction.
        reduction: `[P]`: iterations of that run.
        spelled: `[P]`: whether LLVM receives the block unrolled. LLVM then decides most conditions
            for each copy.
        risk: `[P]`: factor on the time for optimisations that LLVM may miss.
    """

    unrolled: Floats
    trips: Floats
    width: Floats
    lanes: npt.NDArray[np.int64]
    points: Floats
    reduction: Floats
    spelled: npt.NDArray[np.bool_]
    risk: Floats


def compiled_loops(
    profile: StageProfile, hardware: Hardware, constants: DraftConstants
) -> CompiledLoops:
    """Predicts the transformations of a stage's loops."""
    width = np.ones(profile.extents.shape[1], dtype=np.float32)
    if profile.vector is not None:
        width = profile.extents[profile.vector]
    lanes = np.float32(hardware.lanes(profile.accesses[-1].buffer.item_bytes))
    asked = unrolled_by_tvm(profile)
    vectors = np.ceil(width / lanes)
    alone, barely = unrolled_by_llvm(profile, asked, vectors, constants.compiler)
    loops: Floats = np.where(asked | alone, profile.extents, np.float32(1))
    unrolled, wide, along = _vectorised(profile, loops, width, lanes, constants.compiler)
    trips = _trips(profile, loops, along, wide / width)
    risk = _risk(profile, alone, barely, wide > width, constants.overlap)
    copies = (asked & (profile.extents > 1)).any(axis=0)
    spelled = np.logical_and(copies, ~alone.any(axis=0))
    kept = _kept(profile, unrolled, trips)
    return CompiledLoops(unrolled, trips, wide, along, *kept, spelled, risk)


def _risk(
    profile: StageProfile,
    alone: Bools,
    barely: npt.NDArray[np.bool_],
    vectors: npt.NDArray[np.bool_],
    overlap: OverlapConstants,
) -> Floats:
    """`[P]`: factor on the time for optimisations that LLVM may miss.

    Args:
        alone: `[L, P]`: the loops that LLVM unrolls by itself.
        barely: `[P]`: whether one of them is close to LLVM's limit.
        vectors: `[P]`: whether LLVM finds the vectors.
    """
    stage = profile.nest.stage
    conditional, plain = overlap.conditional_unrolling_risk, overlap.unrolling_risk
    unrolling = np.float32(conditional if stage.has_branch else plain)
    risk = np.where(alone.any(axis=0) & bool(stage.reduce), unrolling, np.float32(1))
    reduced = (alone & profile.reductions).any(axis=0) & ~barely
    of_vectors = np.where(reduced, np.float32(1), np.float32(overlap.vectorisation_risk))
    result: Floats = np.where(vectors, of_vectors, risk)
    return result


def _kept(profile: StageProfile, unrolled: Floats, trips: Floats) -> tuple[Floats, Floats]:
    """`[P]` each: points and iterations of a run of the reduction with its sums in registers.

    The run ends, from the innermost loop outwards, at the first spatial loop that remains, or at
    the first loop with a condition inside.
    """
    extents, reduces = profile.extents, profile.reductions
    spatial = profile.others & ~reduces
    goes_on = ~spatial | (trips == 1)
    going = from_inside(np.logical_and, ~profile.guarded) & all_inside(goes_on)
    run = masked_product(going & reduces, extents)
    copies = from_inside(np.multiply, np.where(spatial, unrolled, np.float32(1)))
    whole = of_loop(copies[:1], np.zeros(len(run), dtype=np.int64))  # 1 where there are no loops
    outermost = innermost((going & reduces & (extents > 1))[::-1])
    points = of_loop(copies[::-1], outermost)
    return np.where(run > 1, points, whole), run


def _vectorised(
    profile: StageProfile,
    unrolled: Floats,
    width: Floats,
    lanes: np.float32,
    compiler: CompilerConstants,
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Vectorises the loop along memory if it is unrolled, or if it is the innermost remaining loop.

    Returns:
        `[L, P]`: copies that each loop leaves in the block.
        `[P]`: elements of a vector.
        `[P]`: number of the vectorised loop, -1 for none.
    """
    extents, moves = profile.extents, np.abs(profile.accesses[-1].moves[:-1])
    # LLVM does not vectorise a block with vectors, conditional reads or other instructions.
    stage = profile.nest.stage
    free = (width < 2) & (not stage.has_branch and not stage.instruction)
    reached = all_inside((unrolled > 1) | (extents == 1) | ~profile.others)
    along = free & profile.others & reached & (moves == width) & (extents > 1)
    loop = innermost(along)
    extent, copies = of_loop(extents, loop), of_loop(unrolled, loop)
    long = extent >= compiler.least_vectorised_iterations
    whole = np.where(long, lanes, np.float32(1))
    most: Floats = np.where(copies > 1, _straight_lanes(profile, unrolled, lanes), whole)
    more: Floats = np.minimum(extent, np.maximum(most / width, 1))
    chosen = along & (np.arange(len(along))[:, None] == loop)
    out = np.where(chosen, at_least(unrolled / more, 1), unrolled)
    vector = -1 if profile.vector is None else profile.vector
    lane_loop = np.where(more > 1, loop, np.where(width > 1, vector, -1))
    return out, width * more, lane_loop


def _trips(
    profile: StageProfile, loops: Floats, along: npt.NDArray[np.int64], wider: Floats
) -> Floats:
    """`[L, P]`: iterations that remain of each loop.

    Args:
        loops: `[L, P]`: copies that each loop leaves in the block.
        along: `[P]`: number of the loop that LLVM vectorises.
        wider: `[P]`: factor by which LLVM widens the vectors; such a loop advances by this number.
    """
    chosen = profile.others & (np.arange(len(loops))[:, None] == along)
    trips: Floats = np.ceil(profile.extents / np.where(chosen, np.maximum(loops, wider), loops))
    return trips


def _straight_lanes(profile: StageProfile, unrolled: Floats, lanes: np.float32) -> Floats:
    """`[P]`: most elements of a vector that LLVM forms from straight-line code.

    These are whole registers if the innermost remaining loop is a reduction loop, because LLVM
    then keeps the sums in registers. Other straight-line code stays scalar.
    """
    stays = profile.others & (profile.extents > 1) & (unrolled == 1)
    reduced = (stays & all_inside(~stays) & profile.reductions).any(axis=0)
    most: Floats = np.where(reduced, lanes, np.float32(1))
    return most
