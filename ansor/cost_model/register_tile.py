"""What one step of the innermost, fully unrolled block of a stage asks of the core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.cost_model.boundary_checks import checked_share
from ansor.cost_model.compiled import CompiledLoops, compiled_loops
from ansor.cost_model.promotion import Promoted, is_promoted, promoted_buffers
from ansor.dag.stage import OpCounts
from ansor.features.profile import AccessProfile, StageProfile
from ansor.features.rows import (
    Floats,
    from_inside,
    innermost,
    of_loop,
    product,
    row_of,
)
from ansor.hardware.cpu import Hardware


@dataclass(frozen=True, eq=False)
class RegisterTile:
    """All `[P] float32` but for one; a step is one execution of the unrolled, vectorised block.

    Attributes:
        steps: how often the block is executed.
        elements: elements it computes.
        statements: vector statements of a step.
        accumulators: vector registers that hold its results.
        fill: what a statement's vectors take of the units, over that of whole registers.
        operations: arithmetic operations of a step, in vectors.
        shuffles: exchanges between two vectors of a step.
        loads: vector loads of a step, spills included.
        stores: vector stores of a step, spills included.
        vectors: whole registers that a step computes, fills and stores.
        drain: cycles a step loses to spills, and to loading and storing the accumulators around
            a run of the inner reduction; nothing overlaps with them.
        chain: additions to one accumulator, one after the other, in a run of the reduction.
        depth: those of one step.
        spelled: bool, see `CompiledLoops`.
        risk: factor on the time, see there.
        checks: copies that check whether they read padding.
    """

    steps: Floats
    elements: Floats
    statements: Floats
    accumulators: Floats
    fill: Floats
    operations: Floats
    shuffles: Floats
    loads: Floats
    stores: Floats
    vectors: Floats
    drain: Floats
    chain: Floats
    depth: Floats
    spelled: npt.NDArray[np.bool_]
    risk: Floats
    checks: Floats


# Measured on Zen 5: between two runs of the inner reduction the pipeline drains, two cycles for
# every point of the tile, or one for every vector that has to be stored.
_DRAIN_PER_POINT = 1.0
_HELD = 0.5  # registers that a value takes which statements far apart use
# How much of what copies of a loop share is held, by the part of the registers that is taken: LLVM
# brings copies together where registers are left. Fitted, to the machine code of 622 programs.
_CROWDED = 2.0
_SPECIAL = 8  # instructions of exp and its like
_GATHER = 2.0  # loads that an element of a strided vector counts for; fitted
# Runs beside the first, for each that fits the window. If each has half of it left, 2; fitted: the
# window holds more than multiply-adds.
_FURTHER_RUNS = 0.5
# A tile that does not fit makes the register allocator spill more than the overhang; fitted, to the
# same machine code.
_SPILL_MARGIN = 2.0
# Sums that go to memory and back, of a block whose copies check for padding: what is stored on one
# of two branches, for others to see, is not kept from one branch to the next. Fitted.
_UNDER_CONDITIONS = 0.5


def register_tiles(
    profiles: Mapping[str, StageProfile], hardware: Hardware
) -> dict[str, RegisterTile]:
    """Counts the work of each stage's innermost block."""
    loops = {name: compiled_loops(profile, hardware) for name, profile in profiles.items()}
    promoted = promoted_buffers(profiles, loops, hardware)
    return {name: _tile(p, loops[name], promoted, hardware) for name, p in profiles.items()}


def _tile(
    profile: StageProfile, loops: CompiledLoops, promoted: Promoted, hardware: Hardware
) -> RegisterTile:
    stage, write = profile.nest.stage, profile.accesses[-1]
    lanes = hardware.lanes(write.buffer.item_bytes)
    vectors = np.ceil(loops.width / np.float32(lanes))
    fill = _fill(loops.width, lanes, hardware.slots)
    folded = _unrolled_reduction(profile, loops.unrolled)
    copies = loops.unrolled.prod(axis=0, dtype=np.float32) / folded
    points = np.minimum(loops.points, copies) if stage.reduce else copies
    depth = np.maximum(folded * profile.nest.density, 1)
    accumulators, statements = points * vectors, copies * depth * vectors
    loads, filled, held = _reads(profile, loops, vectors, fill, accumulators, promoted, hardware)
    stays = is_promoted(promoted, write)
    stores = np.where(stays, np.float32(0), _registers(profile, write, loops, vectors) * fill)
    checked = checked_share(profile, loops.unrolled)
    drain, chain = np.zeros_like(fill), np.ones_like(fill)
    if stage.reduce:
        least = accumulators + vectors + 1
        held = held + _held_for_copies(profile, loops, vectors, least, hardware)
        spilled = _spilled(least, held, depth, hardware)
        spilled = np.where(loops.reduction > 1, spilled, np.float32(0))
        rounds = np.maximum(loops.reduction / folded, 1)
        chain = rounds * depth
        in_flight = runs_in_flight(statements * rounds, hardware)
        around = np.float32(_UNDER_CONDITIONS) * statements * fill
        spilled = spilled + np.where((checked > 0) & ~stays, around, np.float32(0))
        drain = (_drain(copies, stores, hardware) / rounds / in_flight + spilled).astype(np.float32)
        loads = loads + stores / rounds + spilled
        filled = filled + stores / rounds + spilled
        stores = stores / rounds + spilled
    shuffles = np.where(profile.nest.transposed, vectors * lanes * np.log2(lanes), 0)
    operations = statements * np.float32(_operations(stage.ops))
    return RegisterTile(
        steps=profile.iterations * profile.nest.executed / (copies * folded * loops.width),
        elements=copies * loops.width,
        statements=statements,
        accumulators=accumulators,
        fill=fill,
        operations=operations + shuffles,
        shuffles=shuffles.astype(np.float32),
        loads=loads.astype(np.float32),
        stores=stores.astype(np.float32),
        vectors=(operations * fill + shuffles + filled + stores).astype(np.float32),
        drain=drain.astype(np.float32),
        chain=chain.astype(np.float32),
        depth=depth.astype(np.float32),
        spelled=loops.spelled,
        risk=loops.risk,
        checks=(copies * folded * checked).astype(np.float32),
    )


def runs_in_flight(statements: Floats, hardware: Hardware) -> Floats:
    """`[P]`: runs of a reduction that are worked on at once, by the statements of one.

    The next begins as soon as what is left of those before fits the window.
    """
    runs: Floats = 1 + np.float32(_FURTHER_RUNS * hardware.scheduler_window) / statements
    return runs


def _reads(
    profile: StageProfile,
    loops: CompiledLoops,
    vectors: Floats,
    fill: Floats,
    accumulators: Floats,
    promoted: Promoted,
    hardware: Hardware,
) -> tuple[Floats, Floats, Floats]:
    """`[P]` each: loads of a step, whole registers that they fill, and registers of values that
    statements far apart use."""
    loads, filled, held = np.zeros_like(fill), np.zeros_like(fill), np.zeros_like(fill)
    for read in (access for access in profile.accesses if not access.is_write):
        needed = _registers(profile, read, loops, vectors)
        stay = needed + accumulators < np.float32(hardware.vector_registers)
        repeats = np.where(stay, _repeats(profile, read, loops), 1).astype(np.float32)
        taken: Floats = np.where(is_promoted(promoted, read), np.float32(0), needed / repeats)
        loads = loads + taken * _turns(profile, read, loops, fill, hardware)
        filled = filled + taken * fill
        wide = _width(profile, read, vectors)
        held = held + np.float32(_HELD) * _shared(read, loops, wide, needed)
    return loads, filled, held


def _held_for_copies(
    profile: StageProfile,
    loops: CompiledLoops,
    vectors: Floats,
    least: Floats,
    hardware: Hardware,
) -> Floats:
    """`[P]`: registers of values that copies of a loop share, beside the `least` that are taken."""
    shared = np.zeros_like(vectors)
    for read in (access for access in profile.accesses if not access.is_write):
        values = _shared_by_copies(profile, read, loops)
        shared = shared + _width(profile, read, vectors) * (values - 1)
    taken = np.minimum(least / np.float32(hardware.vector_registers), 1)
    held: Floats = taken ** np.float32(_CROWDED) * shared
    return held


def _spilled(needed: Floats, held: Floats, depth: Floats, hardware: Hardware) -> Floats:
    """`[P]`: registers of a step that are stored and loaded again: what each addition needs and
    does not get, as often as there are additions, and what is held beside it."""
    free = np.float32(hardware.vector_registers) - needed
    over = depth * np.maximum(-free, 0) + np.maximum(held - np.maximum(free, 0), 0)
    spilled: Floats = np.where(over > 0, over + np.float32(_SPILL_MARGIN), np.float32(0))
    return spilled


def _drain(copies: Floats, stores: Floats, hardware: Hardware) -> Floats:
    """`[P]`: cycles between two runs of the inner reduction, if nothing else is in flight."""
    exchange = 1 / hardware.stores_per_cycle + 1 / hardware.loads_per_cycle
    points = np.float32(_DRAIN_PER_POINT) * copies
    cycles: Floats = np.maximum(points, np.float32(exchange) * stores)
    return cycles


def _operations(ops: OpCounts) -> int:
    """Instructions of a statement beside loads and stores."""
    count = max(ops.float_add, ops.float_mul) + ops.float_cmp + ops.float_div + ops.select
    return count + ops.int_add + ops.int_mul + ops.int_cmp + ops.float_special * _SPECIAL


def _unrolled_reduction(profile: StageProfile, unrolled: Floats) -> Floats:
    """`[P]`: reduction steps of one step of the block."""
    reduces = [profile.nest.loops[loop].reduce for loop in profile.active]
    return product(np.asarray(reduces, dtype=np.bool_)[:, None], unrolled)


def _repeats(profile: StageProfile, access: AccessProfile, loops: CompiledLoops) -> Floats:
    """`[P]`: blocks in a row that read the same: iterations of the innermost loop that stays, where
    it does not move the access."""
    stays = profile.others & (loops.trips > 1)
    loop = innermost(stays)
    moved = row_of(access.moves, loop)
    return np.where(moved == 0, of_loop(loops.trips, loop), np.float32(1))


def _shared(access: AccessProfile, loops: CompiledLoops, width: Floats, needed: Floats) -> Floats:
    """`[P]`: registers of an access whose values several statements, far apart, use."""
    uses = width * product(access.moved, loops.unrolled)
    shared: Floats = np.where(uses > 1.01 * needed, needed, 0)
    return shared


def _shared_by_copies(profile: StageProfile, access: AccessProfile, loops: CompiledLoops) -> Floats:
    """`[P]`: values of an access that the copies of a loop which does not move it, the outermost of
    these, all use: LLVM loads them once and keeps them from the first copy to the last."""
    repeats = profile.others & (loops.unrolled > 1) & ~access.moved
    inside = np.where(profile.others & access.moved, loops.unrolled, np.float32(1))
    values = np.ones_like(inside)
    values[:-1] = from_inside(np.multiply, inside[1:])
    return of_loop(values[::-1], innermost(repeats[::-1]))


def _fill(width: Floats, lanes: int, slots: int) -> Floats:
    """`[P]`: turns in a unit of a statement on so many elements, over those of whole registers."""
    turns = np.ceil(width / np.float32(lanes / slots)) / np.float32(slots)
    fill: Floats = (turns / np.ceil(width / np.float32(lanes))).astype(np.float32)
    return fill


def _turns(
    profile: StageProfile,
    access: AccessProfile,
    loops: CompiledLoops,
    fill: Floats,
    hardware: Hardware,
) -> Floats:
    """`[P]`: turns of a load, over those of a whole register; that of an element takes one."""
    whole = np.abs(_lane_stride(profile, access, loops)) == 1
    return np.where(whole, fill, np.float32(1 / hardware.slots)).astype(np.float32)


def _lane_stride(profile: StageProfile, access: AccessProfile, loops: CompiledLoops) -> Floats:
    """`[P]`: elements between what neighbouring lanes of a statement access in memory."""
    stride = row_of(access.moves, loops.lanes)
    # Of no loop, -1: the row of zeros. A square is loaded along the other loop.
    loaded: Floats = np.where(profile.nest.transposed, 1, stride)
    return loaded


def _width(profile: StageProfile, access: AccessProfile, vectors: Floats) -> Floats:
    """`[P]`: registers that one statement reads of an access."""
    moved = None if profile.vector is None else access.strides.get(profile.vector)
    return np.ones_like(vectors) if moved is None else np.where(moved != 0, vectors, 1)


def _registers(
    profile: StageProfile, access: AccessProfile, loops: CompiledLoops, vectors: Floats
) -> Floats:
    """`[P]`: loads (or stores) that one block needs for an access.

    One per distinct vector; an operand that does not move along the vector is broadcast, one that
    moves by more than an element is gathered element by element.
    """
    depth = _outermost(profile, loops)
    elements = row_of(access.footprint, depth)
    stride = _lane_stride(profile, access, loops)
    gathered = np.where(np.abs(stride) > 1, np.float32(_GATHER), 1)
    looped = (depth > loops.lanes) & (loops.lanes >= 0) & (stride != 0)
    elements = elements * np.where(looped, loops.width, 1)  # a loop that became vectors
    result: Floats = np.where(
        np.abs(stride) == 1, np.maximum(elements / loops.width, 1) * vectors, elements * gathered
    )
    return result


def _outermost(profile: StageProfile, loops: CompiledLoops) -> npt.NDArray[np.int64]:
    """`[P]`: how many loops are outside the block."""
    inside = loops.unrolled > 1
    if profile.vector is not None:
        inside[profile.vector] |= profile.extents[profile.vector] > 1
    return len(inside) - 1 - innermost(inside[::-1])
