"""What one step of the innermost, fully unrolled block of a stage asks of the core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansor.features.profile import AccessProfile, Floats, StageProfile
from ansor.hardware.cpu import Hardware


@dataclass(frozen=True, eq=False)
class RegisterTile:
    """All `[P] float32`; a step is one execution of the unrolled, vectorised block.

    Attributes:
        steps: how often the block is executed.
        elements: elements it computes.
        statements: vector statements of a step.
        accumulators: vector registers that hold its results.
        operations: arithmetic operations of a step, in vectors.
        loads: vector loads of a step, spills included.
        stores: vector stores of a step, spills included.
        drain: cycles a step loses to spills, and to loading and storing the accumulators around
            a run of the inner reduction; nothing overlaps with them.
    """

    steps: Floats
    elements: Floats
    statements: Floats
    accumulators: Floats
    operations: Floats
    loads: Floats
    stores: Floats
    drain: Floats


# Measured on Zen 5: between two runs of the inner reduction the pipeline drains, two cycles for
# every point of the tile, or one for every vector that has to be stored.
_DRAIN_PER_POINT = 2.0
# A tile that does not fit makes the register allocator spill more than the overhang.
_SPILL_MARGIN = 4.0


def register_tile(profile: StageProfile, hardware: Hardware) -> RegisterTile:
    """Counts the work of a stage's innermost block."""
    stage = profile.nest.stage
    write = profile.accesses[-1]
    ones = np.ones(profile.extents.shape[1], dtype=np.float32)
    width = ones if profile.vector is None else profile.extents[profile.vector]
    vectors = np.ceil(width / np.float32(hardware.lanes(write.buffer.item_bytes)))
    unrolled = unrolled_extents(profile)
    folded = _folded_reduction(profile, unrolled)
    copies = unrolled.prod(axis=0, dtype=np.float32) / folded
    accumulators = copies * vectors
    statements = accumulators * folded
    reads = [a for a in profile.accesses if not a.is_write]
    loads = sum((_registers(profile, a, unrolled, width, vectors) for a in reads), 0 * ones)
    stores = _registers(profile, write, unrolled, width, vectors)
    drain = 0 * ones
    if stage.reduce:
        reduction = innermost_reduction(profile)
        over = accumulators + vectors + 1 - np.float32(hardware.vector_registers)
        spilled = np.where((over > 0) & (reduction > 1), over + np.float32(_SPILL_MARGIN), 0)
        rounds = np.maximum(reduction / folded, 1)
        drain = np.maximum(np.float32(_DRAIN_PER_POINT) * copies, stores) / rounds + spilled
        loads = loads + spilled
        stores = spilled
    ops = stage.ops
    count = max(ops.float_add, ops.float_mul) + ops.float_cmp + ops.float_div + ops.select
    count += ops.int_add + ops.int_mul + ops.int_cmp + ops.float_special * 8
    return RegisterTile(
        steps=profile.iterations / (copies * folded * width),
        elements=copies * width,
        statements=statements,
        accumulators=accumulators,
        operations=statements * np.float32(count),
        loads=loads.astype(np.float32),
        stores=stores.astype(np.float32),
        drain=drain.astype(np.float32),
    )


def _folded_reduction(profile: StageProfile, unrolled: Floats) -> Floats:
    """`[P]`: reduction steps that are unrolled, being over folded axes."""
    reduces = [profile.nest.loops[loop].reduce for loop in profile.active]
    count: Floats = np.where(np.asarray(reduces, dtype=np.bool_)[:, None], unrolled, 1).prod(axis=0)
    return count


def unrolled_extents(profile: StageProfile) -> Floats:
    """`[L, P]`: extents of the unrolled loops, 1 for the others."""
    mask = profile.nest.unrolled[list(profile.active)]
    out: Floats = np.where(mask, profile.extents, np.float32(1))
    return out


def innermost_reduction(profile: StageProfile) -> Floats:
    """`[P]`: reduction steps between two visits of another element: what stays in registers.

    Counts the reduction loops inside the innermost spatial loop that is neither vectorised nor
    unrolled.
    """
    count = np.ones(profile.extents.shape[1], dtype=np.float32)
    inside = np.ones(profile.extents.shape[1], dtype=np.bool_)
    for number in reversed(range(len(profile.extents))):
        loop = profile.active[number]
        extent = profile.extents[number]
        if profile.nest.loops[loop].reduce and loop >= profile.nest.num_host:
            count = np.where(inside, count * extent, count)
        elif number != profile.vector:
            inside = inside & ((extent == 1) | profile.nest.unrolled[loop])
    return count


def _registers(
    profile: StageProfile, access: AccessProfile, unrolled: Floats, width: Floats, vectors: Floats
) -> Floats:
    """`[P]`: loads (or stores) that one step needs for an access.

    One per distinct vector; an operand that does not move along the vector is broadcast, one that
    moves by more than an element is gathered element by element.
    """
    distinct = np.ones(len(width), dtype=np.float32)
    for number, moved in access.strides.items():
        if number != profile.vector:
            distinct = distinct * np.where(moved != 0, unrolled[number], 1)
    stride = access.strides.get(profile.vector) if profile.vector is not None else None
    if stride is None:
        return distinct
    along = np.where(stride == 1, vectors, np.where(stride == 0, 1, width))
    result: Floats = distinct * along
    return result
