"""The loops that TVM and LLVM unroll in full."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ansor.features.loop_tables import Bools, Floats, all_inside, from_inside, masked_product
from ansor.features.profile import AccessProfile, StageProfile
from ansor.targets.cpu.draft.constants import CompilerConstants


def unrolled_by_tvm(profile: StageProfile) -> Bools:
    """`[L, P]`: the loops that TVM unrolls on the program's request.

    These are the register tile, and the loops around it up to the sketch's limit on the copies of
    a statement.
    """
    extents, others = profile.extents, profile.others
    tile = profile.nest.unrolled[list(profile.active)]
    copies = masked_product(tile, extents)
    count = copies * from_inside(np.multiply, np.where(tile | ~others, np.float32(1), extents))
    return tile | _unbroken(profile, tile, count <= profile.nest.unroll_most)


def unrolled_by_llvm(
    profile: StageProfile, asked: Bools, vectors: Floats, compiler: CompilerConstants
) -> tuple[Bools, npt.NDArray[np.bool_]]:
    """The loops that LLVM unrolls by itself.

    Args:
        asked: `[L, P]`: the loops that the program unrolls.
        vectors: `[P]`: registers that hold the result of one statement.

    Returns:
        `[L, P]`: the loops.
        `[P]`: whether one of them stays below the limit only because LLVM is expected to simplify
        its copies.
    """
    extents = profile.extents
    most = np.where(
        extents <= compiler.most_short_iterations,
        np.float32(compiler.most_instructions_of_short_loop),
        np.float32(compiler.most_unrolled_instructions),
    )
    count = extents * _body(profile, vectors, compiler)
    unrolled = _unbroken(profile, asked, count <= most) & (extents > 1)
    above = count > np.float32(compiler.most_unrolled_instructions)
    return unrolled, (unrolled & above).any(axis=0)


def _unbroken(profile: StageProfile, asked: Bools, short: Bools) -> Bools:
    """`[L, P]`: the short loops up to the first loop that stays, from the innermost loop outwards.
    The loops in `asked` are left out."""
    more = profile.others & ~asked & ~profile.guarded & short
    gone = more | asked | (profile.extents == 1) | ~profile.others  # leave no loop
    unrolled: Bools = more & all_inside(gone)
    return unrolled


def _body(profile: StageProfile, vectors: Floats, compiler: CompilerConstants) -> Floats:
    """`[L, P]`: instructions in one iteration of each loop, if all its inner loops are unrolled.

    The count covers arithmetic, loads and stores. Each register counts once. An instruction that
    is the same in all iterations does not count, because LLVM hoists it before it unrolls.
    """
    ops = profile.nest.stage.ops
    arithmetic = ops.float_add + ops.float_mul + ops.float_cmp + ops.float_div + ops.select
    arithmetic += ops.int_add + ops.int_mul
    copies = np.ones_like(profile.extents)
    loops = np.where(profile.others, profile.extents, np.float32(1))
    copies[:-1] = from_inside(np.multiply, loops[1:])
    body: Floats = np.float32(arithmetic) * copies * vectors
    for access in profile.accesses:
        body += access.moved * _instructions(profile, access, vectors, compiler)
    return body


def _instructions(
    profile: StageProfile, access: AccessProfile, vectors: Floats, compiler: CompilerConstants
) -> Floats:
    """`[L, P]`: loads and stores of an access in one iteration of each loop. A written element has
    a load and a store."""
    elements = access.footprint[1:]
    if profile.vector is None:
        count = elements
    else:
        width = profile.extents[profile.vector]
        broadcast = np.float32(compiler.broadcast_instructions)
        spread = np.where(width > 1, broadcast, np.float32(1))
        along = access.moved[profile.vector]
        count = elements * np.where(along, vectors / width, spread)
    instructions: Floats = count * np.float32(2 if access.is_write else 1)
    return instructions
