"""The time to stream constant operands from memory, and the part of it that a stage waits for."""

from __future__ import annotations

import numpy as np

from ansor.features.loop_tables import Floats
from ansor.features.profile import AccessProfile, StageProfile
from ansor.targets.cpu.draft.constants import CoreConstants


def cold_bytes(profile: StageProfile, core: CoreConstants) -> Floats:
    """`[P]`: bytes of constant operands, plus the bytes that memory could deliver during jumps."""
    total = np.zeros(profile.extents.shape[1], dtype=np.float32)
    for access in profile.accesses:
        if access.buffer.constant:
            run = sequential_run(profile, access) * np.float32(access.buffer.item_bytes)
            total += access.bytes[0] * (1 + np.float32(core.cold_jump_bytes) / run)
    return total


def sequential_run(profile: StageProfile, access: AccessProfile) -> Floats:
    """`[P]`: elements that are read in sequence before the address jumps.

    A loop that does not move the access is ignored, because it reads the elements from a cache.
    """
    run = np.ones(profile.extents.shape[1], dtype=np.float32)
    running = np.ones(profile.extents.shape[1], dtype=np.bool_)
    for loop in sorted(access.strides, reverse=True):
        extent, stride = profile.extents[loop], access.strides[loop]
        goes_on = (stride == run) | (extent == 1) | (stride == 0)
        grows = running & goes_on & (stride != 0)
        run = np.where(grows, run * extent, run)
        running = running & goes_on
    return run


def stall_cycles(profile: StageProfile, cold: Floats, busy: Floats, cores: int) -> Floats:
    """`[P]`: cycles that a stage waits for its constant operands.

    A stage without prefetches waits for the whole transfer. A stage with prefetches waits for the
    first part of each core, or for the start of each run. If the transfer takes longer than the
    work, the stage also waits for the difference (measured on Zen 5).

    Args:
        cold: `[P]`: cycles to stream the constant operands.
        busy: `[P]`: cycles of the work on data in caches.
    """
    part, constant = profile.prefetched, profile.largest_constant
    if constant is None or not part.exists.any():
        return cold
    buffer = constant.buffer
    total = np.float32(buffer.num_bytes / buffer.item_bytes)
    share = part.elements * np.maximum(cores / total, 1 / part.run)
    left = np.maximum(cold - busy, np.minimum(share, 1) * cold)
    result: Floats = np.where(part.exists, left, cold)
    return result
