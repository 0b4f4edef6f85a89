"""Which loops are unrolled in full: by TVM, as the program says, and by LLVM, of those left."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ansor.features.profile import AccessProfile, StageProfile
from ansor.features.rows import Bools, Floats, all_inside, from_inside, product

# Instructions that the copies of a loop may come to: LLVM's threshold at level 2, which is in use.
# Loops of few iterations it goes through one by one, and allows for what vanishes: fitted.
_MOST = 150.0
_MOST_OF_FEW = 200.0
_FEW = 10  # iterations, LLVM's own
_BROADCAST = 3.0  # instructions that spread one element over a vector


def unrolled_by_tvm(profile: StageProfile) -> Bools:
    """`[L, P]`: the register tile, and the loops around it that leave at most as many copies of a
    statement as the sketch allows."""
    extents, others = profile.extents, profile.others
    tile = profile.nest.unrolled[list(profile.active)]
    copies = product(tile, extents)
    count = copies * from_inside(np.multiply, np.where(tile | ~others, np.float32(1), extents))
    return tile | _up_to_the_first_that_stays(profile, tile, count <= profile.nest.unroll_most)


def unrolled_by_llvm(
    profile: StageProfile, asked: Bools, vectors: Floats
) -> tuple[Bools, npt.NDArray[np.bool_]]:
    """`[L, P]`: the loops that come to few instructions, besides what the program unrolls itself;
    and `[P]`, whether one of them does so only because much is expected to vanish.

    Args:
        asked: `[L, P]`: what that is.
        vectors: `[P]`: registers of a statement's result.
    """
    extents = profile.extents
    most = np.where(extents <= _FEW, np.float32(_MOST_OF_FEW), np.float32(_MOST))
    count = extents * _body(profile, vectors)
    unrolled = _up_to_the_first_that_stays(profile, asked, count <= most) & (extents > 1)
    return unrolled, (unrolled & (count > np.float32(_MOST))).any(axis=0)


def _up_to_the_first_that_stays(profile: StageProfile, asked: Bools, short: Bools) -> Bools:
    """`[L, P]`: what is short, from the innermost loop outwards, besides what is asked for."""
    more = profile.others & ~asked & ~profile.guarded & short
    gone = more | asked | (profile.extents == 1) | ~profile.others  # leave no loop
    unrolled: Bools = more & all_inside(gone)
    return unrolled


def _body(profile: StageProfile, vectors: Floats) -> Floats:
    """`[L, P]`: instructions of an iteration of each loop if none is left inside: what all
    statements compute, and what is loaded and stored. Each register counts once, and what is the
    same in all iterations has left the loop before it is unrolled."""
    ops = profile.nest.stage.ops
    own = ops.float_add + ops.float_mul + ops.float_cmp + ops.float_div + ops.select
    own += ops.int_add + ops.int_mul
    copies = np.ones_like(profile.extents)
    loops = np.where(profile.others, profile.extents, np.float32(1))
    copies[:-1] = from_inside(np.multiply, loops[1:])
    body: Floats = np.float32(own) * copies * vectors
    for access in profile.accesses:
        body += access.moved * _instructions(profile, access, vectors)
    return body


def _instructions(profile: StageProfile, access: AccessProfile, vectors: Floats) -> Floats:
    """`[L, P]`: loads of all that an iteration of each loop reads; loads and stores of what it
    writes."""
    elements = access.footprint[1:]
    if profile.vector is None:
        count = elements
    else:
        width = profile.extents[profile.vector]
        spread = np.where(width > 1, np.float32(_BROADCAST), np.float32(1))
        along = access.moved[profile.vector]
        count = elements * np.where(along, vectors / width, spread)
    instructions: Floats = count * np.float32(2 if access.is_write else 1)
    return instructions
