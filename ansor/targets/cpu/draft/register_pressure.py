"""Register pressure: the registers of a stage's innermost block that LLVM spills."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansor.features.loop_tables import (
    Bools,
    Floats,
    from_inside,
    innermost,
    masked_product,
    of_loop,
)
from ansor.features.profile import AccessProfile
from ansor.targets.cpu.draft.constants import ROUNDING
from ansor.targets.cpu.draft.innermost_block import Block, read_width


@dataclass(frozen=True, eq=False)
class Pressure:
    """The registers that a step needs; each array is `[P]`.

    Attributes:
        results: registers of accumulators.
        operands: registers of one statement's operands.
        held: registers of values with several uses, which are occupied between these.
        spilled: registers that a step spills and reloads.
    """

    results: Floats
    operands: Floats
    held: Floats
    spilled: Floats


def spilled_registers(block: Block) -> Floats:
    """`[P]`: registers that a step spills and reloads because of register pressure."""
    return register_pressure(block).spilled


def register_pressure(block: Block) -> Pressure:
    """The registers of a step.

    Each addition needs its accumulator and its operands. A value with several uses needs a
    register between them.
    """
    unit = block.hardware.dot_unit(block.profile.nest.stage.instruction)
    each = 1 if unit is None else unit.operand_registers
    operands = each * (block.vectors + 1)
    needed = block.accumulators + operands
    held = _held_between_statements(block) + _held_between_copies(block, needed)
    free = np.float32(block.hardware.vector_registers) - needed
    over = block.depth * np.maximum(-free, 0) + np.maximum(held - np.maximum(free, 0), 0)
    margin = np.float32(block.constants.compiler.spill_margin)
    spilled = np.where(over > 0, over + margin, np.float32(0))
    in_runs: Floats = np.where(block.loops.reduction > 1, spilled, np.float32(0))
    return Pressure(block.accumulators, operands, held, in_runs)


def conditional_spills(block: Block, conditional: Bools) -> Floats:
    """`[P]`: accumulators that a step stores and reloads because of conditions on padding."""
    share = np.float32(block.constants.compiler.accumulator_spills_per_check)
    around = share * block.statements * block.fill
    spilled: Floats = np.where(conditional, around, np.float32(0))
    return spilled


def _held_between_statements(block: Block) -> Floats:
    """`[P]`: registers of values with uses in distant statements."""
    held = np.zeros_like(block.fill)
    for read, needed in block.reads:
        shared = _shared(block, read, needed)
        held = held + np.float32(block.constants.compiler.registers_per_distant_use) * shared
    return held


def _held_between_copies(block: Block, needed: Floats) -> Floats:
    """`[P]`: registers of values that the copies of a loop share.

    Args:
        needed: `[P]`: registers that are occupied anyway.
    """
    shared = np.zeros_like(block.vectors)
    for read, _ in block.reads:
        values = _shared_by_copies(block, read)
        shared = shared + read_width(block, read) * (values - 1)
    occupied = np.minimum(needed / np.float32(block.hardware.vector_registers), 1)
    held: Floats = occupied ** np.float32(block.constants.compiler.shared_value_exponent) * shared
    return held


def _shared(block: Block, access: AccessProfile, needed: Floats) -> Floats:
    """`[P]`: registers of an access whose values have uses in several distant statements.

    Args:
        needed: `[P]`: registers of all its values.
    """
    uses = read_width(block, access) * masked_product(access.moved, block.loops.unrolled)
    shared: Floats = np.where(uses > ROUNDING * needed, needed, 0)
    return shared


def _shared_by_copies(block: Block, access: AccessProfile) -> Floats:
    """`[P]`: values of an access that all copies of a loop use.

    The loop is the outermost one that is unrolled and does not move the access. LLVM loads these
    values once and keeps them from the first copy to the last.
    """
    others, unrolled = block.profile.others, block.loops.unrolled
    repeats = others & (unrolled > 1) & ~access.moved
    inside = np.where(others & access.moved, unrolled, np.float32(1))
    values = np.ones_like(inside)
    values[:-1] = from_inside(np.multiply, inside[1:])
    return of_loop(values[::-1], innermost(repeats[::-1]))
