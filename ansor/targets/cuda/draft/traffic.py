"""The bytes that a GPU kernel moves between memory, L2 and the multiprocessors."""

from __future__ import annotations

import numpy as np

from ansor.features.loop_tables import Bools, Floats
from ansor.features.profile import AccessProfile, StageProfile
from ansor.program.loop_structure import num_leading
from ansor.program.nest import LoopNest
from ansor.program.steps import BindRows, BindTiles, BindWarps, CooperativeFetch
from ansor.targets.cuda.draft.constants import GPU
from ansor.targets.cuda.kernels import Kernel
from ansor.targets.cuda.machine import Gpu


def traffic(
    nest: LoopNest, profiles: dict[str, StageProfile], kernel: Kernel
) -> tuple[Floats, Floats]:
    """`[P]` each: bytes that a kernel requests from L2, and distinct bytes among them."""
    sketch = nest.population.sketch
    moved = np.zeros(nest.size, dtype=np.float32)
    unique = np.zeros(nest.size, dtype=np.float32)
    on_chip = {sketch.dag.stages[name].output for name in sketch.roles.scope}
    for name in kernel.members:
        profile = profiles[name]
        for access in profile.accesses:
            if access.buffer.name in on_chip:
                continue
            moved = moved + _requested(nest, profile, access, kernel)
            unique = unique + access.bytes[0]
    return moved, np.minimum(unique, moved)


def fits_l2(unique: Floats, gpu: Gpu) -> Bools:
    """`[P]`: whether the distinct bytes of a kernel stay in L2."""
    fits: Bools = unique <= gpu.l2_bytes
    return fits


def memory_bytes(moved: Floats, unique: Floats, gpu: Gpu) -> Floats:
    """`[P]`: bytes that a kernel reads from memory; the first two arguments as `traffic` returns
    them."""
    repeated = np.where(fits_l2(unique, gpu), np.float32(0), np.float32(GPU.l2_miss_share))
    total: Floats = unique + repeated * (moved - unique)
    return total


def _requested(
    nest: LoopNest, profile: StageProfile, access: AccessProfile, kernel: Kernel
) -> Floats:
    """`[P]`: bytes that an access requests. Each block, or each round of a fetch, requests whole
    sectors for the elements that it touches."""
    depth = sum(loop < _shared_from(nest, profile, kernel) for loop in profile.active)
    item = np.float32(access.buffer.item_bytes)
    run = np.maximum(access.run[depth] * item, item)
    sector = GPU.sector_bytes
    sectors = np.where(run < sector, sector / run, 1 + sector / 4 / run)
    if depth == 0:
        sectors = np.maximum(sectors, _scattered(profile, access))
    spans = profile.outer[depth] * access.bytes[depth]
    requested: Floats = (spans * np.minimum(sectors, sector / item)).astype(np.float32)
    return requested


def _shared_from(nest: LoopNest, profile: StageProfile, kernel: Kernel) -> int:
    """Number of loops outside the range that the threads of a block touch together."""
    roles = nest.population.sketch.roles
    if isinstance(roles.placed.get(profile.nest.stage.name), CooperativeFetch):
        return profile.nest.num_host
    bound = roles.bound[kernel.root]
    if isinstance(bound, BindTiles | BindWarps):
        return num_leading(nest.stages[kernel.root].stage)
    return bound.rows if isinstance(bound, BindRows) else 0


def _scattered(profile: StageProfile, access: AccessProfile) -> Floats:
    """`[P]`: requested sectors over needed sectors if neighbouring threads access distant elements.

    The innermost spatial loop, except the vector loop, numbers the threads.
    """
    stage, factor = profile.nest, np.ones(profile.extents.shape[1], dtype=np.float32)
    width = stage.extents[-1] if stage.loops[-1].part else np.ones_like(factor)
    for loop, number in enumerate(profile.active):
        if stage.loops[number].reduce or stage.loops[number].part or loop not in access.strides:
            continue
        apart = np.abs(access.strides[loop]) / width
        factor = np.where(apart > 1, apart, np.where(apart > 0, 1, factor))
    return factor.astype(np.float32)
