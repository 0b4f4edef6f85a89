"""The effects of annotation steps on the loops of a stage."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ansor.program.loop_structure import Loop
from ansor.program.roles import Roles
from ansor.program.sketch import Population
from ansor.program.steps import Interleave, SkipPadding, Transpose, Vectorize


def skipped(
    population: Population,
    step: SkipPadding | None,
    loops: tuple[Loop, ...],
    extents: npt.NDArray[np.int32],
    inner: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """`[P]`, `[L, P]`: share of a root stage's iterations that remain after `SkipPadding`, and the
    loops with a condition inside. `inner` are the loops of the register tile."""
    share = np.ones(len(population), dtype=np.float32)
    guarded = np.zeros(extents.shape, dtype=np.bool_)
    if step is None:
        return share, guarded
    asked = population.values(step.hole)[:, 0] == 1
    numbers = np.arange(len(loops))[:, None]
    for padded in step.padded:
        moving = np.asarray([loop.axis in padded.axes for loop in loops])[:, None] & (extents > 1)
        here = asked & moving.any(axis=0) & ~(moving & inner).any(axis=0)
        innermost = np.where(moving, numbers, -1).max(axis=0)
        guarded |= here & (numbers == innermost)
        share = np.where(here, share * np.float32(padded.share), share)
    return share, guarded


def prefetched(population: Population, roles: Roles, name: str) -> npt.NDArray[np.int32]:
    """`[4, P]`: see `Prefetch`."""
    step = roles.prefetch.get(name)
    if step is None:
        return np.zeros((4, len(population)), dtype=np.int32)
    sizes = (*step.elements, step.run, step.distance)
    return np.outer(sizes, population.values(step.hole)[:, 0]).astype(np.int32)


def shuffles(step: Vectorize | None, extents: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """`[P]`: exchanges between two vectors in a tile of `Transpose` or `Interleave`.

    A square takes a round for each bit of a lane's number. Interleaved rows take one exchange each.
    """
    if isinstance(step, Transpose):
        square = (extents[-2:] == step.lanes).all(axis=0)
        return np.where(square, step.lanes * (step.lanes.bit_length() - 1), 0).astype(np.int32)
    if isinstance(step, Interleave):
        whole = (extents[-2] == step.rows) & (extents[-1] > 1)
        return np.where(whole, step.rows, 0).astype(np.int32)
    return np.zeros(extents.shape[1], dtype=np.int32)
