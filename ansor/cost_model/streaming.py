"""How fast weights stream from memory, by how far the accesses of a stage run on, and how long a
stage waits for them."""

from __future__ import annotations

import numpy as np

from ansor.features.profile import AccessProfile, StageProfile
from ansor.features.rows import Floats

# What a jump costs, in bytes that could have been read instead. Chosen, not fitted: with cold
# weights of 9 MB a convolution took 680 to 1040 us on runs of 128 bytes, 575 to 645 us packed.
_RUN_IN_BYTES = 256.0


def cold_bytes(profile: StageProfile) -> Floats:
    """`[P]`: bytes of constant operands, as many as would take the same time in one long run."""
    total = np.zeros(profile.extents.shape[1], dtype=np.float32)
    for access in profile.accesses:
        if access.buffer.constant:
            run = sequential_run(profile, access) * np.float32(access.buffer.item_bytes)
            total += access.bytes[0] * (1 + np.float32(_RUN_IN_BYTES) / run)
    return total


def sequential_run(profile: StageProfile, access: AccessProfile) -> Floats:
    """`[P]`: elements that are read one after the other before the address jumps.

    Loops that do not move the access are passed over: they find it in a cache.
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
    """`[P]`: cycles of waiting for weights that take `cold` cycles to stream, by a stage that is
    `busy` for so long with what is in caches.

    Measured on Zen 5: what is not prefetched is waited for, all of it; else only the first part of
    each core is, or what each run begins with, and what takes longer than the work.
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
