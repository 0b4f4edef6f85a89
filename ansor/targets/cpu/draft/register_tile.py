"""The demands of one step of a stage's innermost, fully unrolled block on the core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ansor.features.loop_tables import Bools, Floats, innermost, of_loop, row_of
from ansor.features.profile import AccessProfile, StageProfile
from ansor.targets.cpu.draft.boundary_checks import checked_share
from ansor.targets.cpu.draft.compiled import compiled_loops
from ansor.targets.cpu.draft.constants import CoreConstants, DraftConstants
from ansor.targets.cpu.draft.innermost_block import Block, block_of, lane_stride, registers
from ansor.targets.cpu.draft.promotion import Promoted, is_promoted, promoted_buffers
from ansor.targets.cpu.draft.register_pressure import conditional_spills, spilled_registers
from ansor.targets.cpu.machine import Hardware


@dataclass(frozen=True, eq=False)
class TileCost:
    """The work of one step. A step is one execution of the unrolled, vectorised block.

    Each array is `[P] float32`, except `spelled`.

    Attributes:
        steps: executions of the block.
        elements: elements that a step computes.
        statements: vector statements of a step.
        accumulators: vector registers that hold the results.
        fill: turns in a unit per register, over the turns of a whole register.
        operations: arithmetic instructions of a step, on vectors.
        shuffles: exchanges between two vectors in a step.
        loads: vector loads of a step, with the reloads of spilled registers.
        stores: vector stores of a step, with the spills.
        vectors: whole registers that a step computes, loads and stores.
        drain: cycles of a step without any overlap: spills, and loads and stores of the
            accumulators around a run of the inner reduction.
        chain: dependent additions to one accumulator in a run of the reduction.
        depth: dependent additions to one accumulator in a step.
        spelled: `[P] bool`, see `CompiledLoops`.
        risk: factor on the time, see `CompiledLoops`.
        checks: copies in a step that check for padding.
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

    @cached_property
    def code(self) -> Floats:
        """`[P]`: instructions of one step."""
        code: Floats = self.operations + self.loads + self.stores
        return code


class _Moves(NamedTuple):
    """Loads and stores of a step; each array is `[P]`.

    Attributes:
        loads, stores, drain, chain: see `TileCost`.
        filled: whole registers that the loads fill.
    """

    loads: Floats
    filled: Floats
    stores: Floats
    drain: Floats
    chain: Floats


def register_tiles(
    profiles: Mapping[str, StageProfile], hardware: Hardware, constants: DraftConstants
) -> dict[str, TileCost]:
    """Counts the work of the innermost block of each stage that runs on vectors."""
    blocks, promoted = blocks_of(profiles, hardware, constants)
    return {name: tile_of(block, promoted) for name, block in blocks.items()}


def blocks_of(
    profiles: Mapping[str, StageProfile], hardware: Hardware, constants: DraftConstants
) -> tuple[dict[str, Block], Promoted]:
    """The innermost block of each stage that runs on vectors, and the buffers in registers."""
    vectors = {n: p for n, p in profiles.items() if not p.nest.tile_instruction}
    loops = {name: compiled_loops(p, hardware, constants) for name, p in vectors.items()}
    promoted = promoted_buffers(profiles, loops, hardware, constants.compiler)
    blocks = {n: block_of(p, loops[n], hardware, constants) for n, p in vectors.items()}
    return blocks, promoted


def tile_of(block: Block, promoted: Promoted) -> TileCost:
    """The work of one step of a block."""
    checked = checked_share(block.profile, block.loops.unrolled)
    moves = _moves(block, promoted, checked > 0)
    shuffles = block.profile.nest.shuffles * block.fill
    operations = block.statements * np.float32(_operations(block))
    vectors = operations * block.fill + shuffles + moves.filled + moves.stores
    return TileCost(
        steps=_steps(block),
        elements=block.copies * block.loops.width,
        statements=block.statements,
        accumulators=block.accumulators,
        fill=block.fill,
        operations=operations + shuffles,
        shuffles=shuffles.astype(np.float32),
        loads=moves.loads.astype(np.float32),
        stores=moves.stores.astype(np.float32),
        vectors=vectors.astype(np.float32),
        drain=moves.drain.astype(np.float32),
        chain=moves.chain.astype(np.float32),
        depth=block.depth.astype(np.float32),
        spelled=block.loops.spelled,
        risk=block.loops.risk,
        checks=(block.copies * block.folded * checked).astype(np.float32),
    )


def _steps(block: Block) -> Floats:
    """`[P]`: executions of the block."""
    executed = block.profile.iterations * block.profile.nest.executed
    steps: Floats = executed / (block.copies * block.folded * block.loops.width)
    return steps


def _moves(block: Block, promoted: Promoted, checks: Bools) -> _Moves:
    """The loads and stores of a step.

    Args:
        checks: `[P]`: whether copies of the block check for padding.
    """
    write = block.profile.accesses[-1]
    loads, filled = _loads(block, promoted)
    in_memory = ~np.asarray(is_promoted(promoted, write))
    stores = np.where(in_memory, registers(block, write) * block.fill, np.float32(0))
    drain, chain = np.zeros_like(block.fill), np.ones_like(block.fill)
    plain = _Moves(loads, filled, stores, drain, chain)
    if not block.profile.nest.stage.reduce:
        return plain
    return _around_runs(block, plain, checks & in_memory)


def _around_runs(block: Block, plain: _Moves, conditional: Bools) -> _Moves:
    """Adds spills, and the accumulators' loads and stores around a run of the inner reduction.

    Args:
        plain: the loads and stores without them.
        conditional: `[P]`: whether the accumulators are stored under conditions.
    """
    rounds = np.maximum(block.loops.reduction / block.folded, 1)
    spilled = spilled_registers(block) + conditional_spills(block, conditional)
    in_flight = runs_in_flight(block.statements * rounds, block.hardware, block.constants.core)
    drain = _drain(block, plain.stores) / rounds / in_flight + spilled
    stores = plain.stores / rounds
    return _Moves(
        loads=plain.loads + stores + spilled,
        filled=plain.filled + stores + spilled,
        stores=stores + spilled,
        drain=drain.astype(np.float32),
        chain=rounds * block.depth,
    )


def runs_in_flight(statements: Floats, hardware: Hardware, core: CoreConstants) -> Floats:
    """`[P]`: runs of a reduction in flight at the same time.

    A run starts as soon as the rest of the earlier runs fits the scheduler window.

    Args:
        statements: `[P]`: statements of one run.
    """
    window = np.float32(core.further_runs_per_window * hardware.scheduler_window)
    runs: Floats = 1 + window / statements
    return runs


def _loads(block: Block, promoted: Promoted) -> tuple[Floats, Floats]:
    """`[P]` each: loads of a step, and whole registers that they fill."""
    loads, filled = np.zeros_like(block.fill), np.zeros_like(block.fill)
    for read, needed in block.reads:
        taken = _taken(block, promoted, read, needed)
        loads = loads + taken * _turns(block, read)
        filled = filled + taken * block.fill
    return loads, filled


def _taken(block: Block, promoted: Promoted, read: AccessProfile, needed: Floats) -> Floats:
    """`[P]`: load instructions of an access in a step; `needed` as in `Block.reads`."""
    stay = needed + block.accumulators < np.float32(block.hardware.vector_registers)
    repeats = np.where(stay, _repeats(block, read), 1).astype(np.float32)
    taken: Floats = np.where(is_promoted(promoted, read), np.float32(0), needed / repeats)
    return taken


def loaded_bytes(block: Block, promoted: Promoted) -> Floats:
    """`[P]`: bytes of operands that a step loads from L1. A load of one element, such as that of an
    operand that is broadcast, has the bytes of this element."""
    total, core = np.zeros_like(block.fill), block.constants.core
    for read, needed in block.reads:
        stride, item_bytes = np.abs(lane_stride(block, read)), read.buffer.item_bytes
        register = block.fill * np.float32(block.hardware.vector_bytes)
        element = item_bytes / np.where(stride > 1, core.loads_per_strided_element, 1)
        total = total + _taken(block, promoted, read, needed) * np.where(
            stride == 1, register, element
        )
    return total.astype(np.float32)


def _drain(block: Block, stores: Floats) -> Floats:
    """`[P]`: cycles between two runs of the inner reduction, with one run in flight.

    The pipeline drains for each point of the tile. The ports store and reload the accumulators at
    the same time; the longer time counts.

    Args:
        stores: `[P]`: stores of the accumulators.
    """
    exchange = 1 / block.hardware.stores_per_cycle + 1 / block.hardware.loads_per_cycle
    points = np.float32(block.constants.core.drain_cycles_per_point) * block.copies
    cycles: Floats = np.maximum(points, np.float32(exchange) * stores)
    return cycles


def _operations(block: Block) -> float:
    """Instructions of one statement, without loads and stores."""
    if block.profile.nest.stage.instruction:
        return 1.0
    ops = block.profile.nest.stage.ops
    count = max(ops.float_add, ops.float_mul) + ops.float_cmp + ops.float_div + ops.select
    count += ops.int_add + ops.int_mul + ops.int_cmp
    return count + ops.float_special * block.constants.compiler.special_function_instructions


def _repeats(block: Block, access: AccessProfile) -> Floats:
    """`[P]`: consecutive steps that read the same elements.

    These are the iterations of the innermost remaining loop, if it does not move the access.
    """
    loops = block.loops
    stays = block.profile.others & (loops.trips > 1)
    loop = innermost(stays)
    moved = row_of(access.moves, loop)
    return np.where(moved == 0, of_loop(loops.trips, loop), np.float32(1))


def _turns(block: Block, access: AccessProfile) -> Floats:
    """`[P]`: turns of a load, over the turns of a whole register. The load of one element takes one
    turn."""
    whole = np.abs(lane_stride(block, access)) == 1
    element = np.float32(1 / block.hardware.slots)
    return np.where(whole, block.fill, element).astype(np.float32)
