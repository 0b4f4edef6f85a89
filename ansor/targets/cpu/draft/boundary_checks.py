"""The copies of a stage's block that check for padding at run time."""

from __future__ import annotations

import numpy as np

from ansor.dag.index import Index, bounds
from ansor.dag.stage import Stage
from ansor.features.loop_tables import Floats
from ansor.features.profile import StageProfile


def checked_share(profile: StageProfile, copies: Floats) -> Floats:
    """`[P]`: share of the block's copies that read padding in some iterations only.

    The compiler decides the condition of every other copy. A copy in the middle of a tile never
    reads padding. An axis that is unrolled as a whole needs no check.

    Args:
        copies: `[L, P]`: copies that each loop leaves in the block.
    """
    stage = profile.nest.stage
    known = np.ones(copies.shape[1], dtype=np.float32)
    reads = zip(stage.reads, profile.accesses, strict=False) if stage.has_branch else ()
    for read, access in reads:
        for index, size in zip(read.indices, access.buffer.shape, strict=True):
            if index is not None and isinstance(size, int):
                known = known * (1 - _checked_along(profile, index, size, copies))
    return 1 - known


def _checked_along(profile: StageProfile, index: Index, size: int, copies: Floats) -> Floats:
    """`[P]`: share of the copies that check one dimension of a read; the dimension has `size`
    elements."""
    low, high = _range(profile.nest.stage, index)
    below, above = max(0, -low), max(0, high - (size - 1))
    inside = np.zeros(copies.shape[1], dtype=np.float32)
    if not below and not above:
        return inside
    for loop, step in profile.nest.coefficients(index).items():
        if loop in profile.active:
            inside += np.abs(step) * (copies[profile.active.index(loop)] - 1)
    moved = np.float32(high - low) - inside  # by the remaining loops
    checked = np.minimum(np.float32(below), moved) + np.minimum(np.float32(above), moved)
    share: Floats = np.clip(checked / (inside + 1), 0, 1)
    return share


def _range(stage: Stage, index: Index) -> tuple[int, int]:
    """Least and greatest value of an affine index over its axes.

    The range is empty, at 0, for any other index and for an axis whose size is a decision.
    """
    sizes = [axis.extent if isinstance(axis.extent, int) else 0 for axis in stage.axes]
    known = all(isinstance(a, int) and a < len(sizes) and sizes[a] for a, _ in index.terms)
    return bounds(index, sizes) if known else (0, 0)
