"""What a GPU kernel moves between memory, the second cache and its multiprocessors."""

from __future__ import annotations

import numpy as np

from ansor.features.kernels import Kernel
from ansor.features.profile import AccessProfile, StageProfile
from ansor.features.rows import Floats
from ansor.program.loops import num_leading
from ansor.program.nest import LoopNest
from ansor.program.steps import BindRows, BindTiles, BindWarps, CooperativeFetch

_SECTOR = 32  # bytes that memory hands out at a time


def traffic(
    nest: LoopNest, profiles: dict[str, StageProfile], kernel: Kernel
) -> tuple[Floats, Floats]:
    """`[P]` each: bytes that a kernel asks the second cache for, and different bytes of them."""
    sketch = nest.population.sketch
    moved = np.zeros(nest.size, dtype=np.float32)
    unique = np.zeros(nest.size, dtype=np.float32)
    on_chip = {sketch.dag.stages[name].output for name in sketch.roles.scope}
    for name in kernel.members:
        profile = profiles[name]
        for access in profile.accesses:
            if access.buffer.name in on_chip:
                continue
            moved = moved + _asked_for(nest, profile, access, kernel)
            unique = unique + access.bytes[0]
    return moved, np.minimum(unique, moved)


def _asked_for(
    nest: LoopNest, profile: StageProfile, access: AccessProfile, kernel: Kernel
) -> Floats:
    """`[P]` bytes: each block, or each round of a fetch, asks for what it touches, in sectors."""
    depth = sum(loop < _shared_from(nest, profile, kernel) for loop in profile.active)
    item = np.float32(access.buffer.item_bytes)
    run = np.maximum(access.run[depth] * item, item)
    sectors = np.where(run < _SECTOR, _SECTOR / run, 1 + _SECTOR / 4 / run)
    if depth == 0:
        sectors = np.maximum(sectors, _scattered(profile, access))
    spans = profile.outer[depth] * access.bytes[depth]
    asked: Floats = (spans * np.minimum(sectors, _SECTOR / item)).astype(np.float32)
    return asked


def _shared_from(nest: LoopNest, profile: StageProfile, kernel: Kernel) -> int:
    """How many loops are outside of what the threads of a block touch together."""
    roles = nest.population.sketch.roles
    if isinstance(roles.placed.get(profile.nest.stage.name), CooperativeFetch):
        return profile.nest.num_host
    bound = roles.bound[kernel.root]
    if isinstance(bound, BindTiles | BindWarps):
        return num_leading(nest.stages[kernel.root].stage)
    return bound.rows if isinstance(bound, BindRows) else 0


def _scattered(profile: StageProfile, access: AccessProfile) -> Floats:
    """`[P]`: sectors asked for over those needed, where threads next to each other are apart in
    memory: the innermost spatial loop but for the vector's numbers the threads."""
    stage, factor = profile.nest, np.ones(profile.extents.shape[1], dtype=np.float32)
    width = stage.extents[-1] if stage.loops[-1].part else np.ones_like(factor)
    for loop, number in enumerate(profile.active):
        if stage.loops[number].reduce or stage.loops[number].part or loop not in access.strides:
            continue
        apart = np.abs(access.strides[loop]) / width
        factor = np.where(apart > 1, apart, np.where(apart > 0, 1, factor))
    return factor.astype(np.float32)
