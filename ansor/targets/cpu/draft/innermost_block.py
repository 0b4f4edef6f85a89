"""The innermost, fully unrolled block of a stage: its sizes, and the registers of its accesses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ansor.features.loop_tables import Floats, innermost, masked_product, row_of
from ansor.features.profile import AccessProfile, StageProfile
from ansor.targets.cpu.draft.compiled import CompiledLoops
from ansor.targets.cpu.draft.constants import DraftConstants
from ansor.targets.cpu.machine import Hardware


@dataclass(frozen=True, eq=False)
class Block:
    """The innermost block of a stage; each array is `[P]`.

    Attributes:
        lanes: elements of a whole register.
        vectors: registers of one statement's result.
        fill: see `TileCost`.
        folded: iterations of the reduction in a step.
        copies: copies of the statement in a step, per iteration of the reduction.
        depth, accumulators, statements: see `TileCost`.
    """

    profile: StageProfile
    loops: CompiledLoops
    hardware: Hardware
    constants: DraftConstants
    lanes: int
    vectors: Floats
    fill: Floats
    folded: Floats
    copies: Floats
    depth: Floats
    accumulators: Floats
    statements: Floats

    @cached_property
    def reads(self) -> list[tuple[AccessProfile, Floats]]:
        """The read accesses of the stage, each with the loads of a step, see `registers`."""
        reads = (access for access in self.profile.accesses if not access.is_write)
        return [(read, registers(self, read)) for read in reads]


def block_of(
    profile: StageProfile, loops: CompiledLoops, hardware: Hardware, constants: DraftConstants
) -> Block:
    """The sizes of a stage's innermost block."""
    lanes = hardware.lanes(profile.accesses[-1].buffer.item_bytes)
    vectors = np.ceil(loops.width / np.float32(lanes))
    fill = _fill(loops.width, lanes, hardware.slots)
    folded = _unrolled_reduction(profile, loops.unrolled)
    copies = loops.unrolled.prod(axis=0, dtype=np.float32) / folded
    points = np.minimum(loops.points, copies) if profile.nest.stage.reduce else copies
    depth = np.maximum(folded * profile.nest.density, 1)
    sizes = (lanes, vectors, fill, folded, copies, depth, points * vectors)
    return Block(profile, loops, hardware, constants, *sizes, copies * depth * vectors)


def _fill(width: Floats, lanes: int, slots: int) -> Floats:
    """`[P]`: turns in a unit per register, over the turns of a whole register.

    Args:
        width: `[P]`: elements of the statement.
        lanes: elements of a register.
        slots: turns of a whole register.
    """
    turns = np.ceil(width / np.float32(lanes / slots)) / np.float32(slots)
    fill: Floats = (turns / np.ceil(width / np.float32(lanes))).astype(np.float32)
    return fill


def _unrolled_reduction(profile: StageProfile, unrolled: Floats) -> Floats:
    """`[P]`: iterations of the reduction in one step of the block."""
    reduces = [profile.nest.loops[loop].reduce for loop in profile.active]
    return masked_product(np.asarray(reduces, dtype=np.bool_)[:, None], unrolled)


def registers(block: Block, access: AccessProfile) -> Floats:
    """`[P]`: loads or stores of an access in one step.

    Each distinct vector needs one. An operand that does not move along the vector is broadcast. An
    operand with a stride is gathered element by element.
    """
    loops, vectors, core = block.loops, block.vectors, block.constants.core
    depth = _outermost(block)
    elements = row_of(access.footprint, depth)
    stride = lane_stride(block, access)
    gathered = np.where(np.abs(stride) > 1, np.float32(core.loads_per_strided_element), 1)
    looped = (depth > loops.lanes) & (loops.lanes >= 0) & (stride != 0)
    elements = elements * np.where(looped, loops.width, 1)  # LLVM vectorised the loop
    result: Floats = np.where(
        np.abs(stride) == 1, np.maximum(elements / loops.width, 1) * vectors, elements * gathered
    )
    return result


def _outermost(block: Block) -> npt.NDArray[np.int64]:
    """`[P]`: number of loops outside the block."""
    profile = block.profile
    inside = block.loops.unrolled > 1
    if profile.vector is not None:
        inside[profile.vector] |= profile.extents[profile.vector] > 1
    return len(inside) - 1 - innermost(inside[::-1])


def lane_stride(block: Block, access: AccessProfile) -> Floats:
    """`[P]`: elements in memory between neighbouring lanes of a statement."""
    stride = row_of(access.moves, block.loops.lanes)  # -1: the last row, which is zero
    # A tile that is rearranged in registers is loaded and stored in whole vectors.
    loaded: Floats = np.where(block.profile.nest.shuffles > 0, 1, stride)
    return loaded


def read_width(block: Block, access: AccessProfile) -> Floats:
    """`[P]`: registers of an access that one statement reads."""
    profile, vectors = block.profile, block.vectors
    moved = None if profile.vector is None else access.strides.get(profile.vector)
    return np.ones_like(vectors) if moved is None else np.where(moved != 0, vectors, 1)
