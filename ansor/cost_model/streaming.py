"""How fast weights stream from memory, by how far the accesses of a stage run on, and how long a
stage waits for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.features.profile import AccessProfile, StageProfile
from ansor.features.span import Floats

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


@dataclass(frozen=True, eq=False)
class RepeatedPart:
    """What a stage reads again and again of an operand, before it goes on to what lies after it.

    `exists` is `[P] bool`, `elements` `[P]`.
    """

    exists: npt.NDArray[np.bool_]
    elements: Floats


def part_ahead(profile: StageProfile) -> RepeatedPart:
    """What is fetched ahead, see `FetchAhead`: as `ansor.program.ahead` finds it in a program."""
    count = profile.extents.shape[1]
    if not profile.nest.ahead.any():
        return RepeatedPart(np.zeros(count, dtype=np.bool_), np.ones(count, dtype=np.float32))
    return _repeated_part(profile, _largest_constant(profile))


def _largest_constant(profile: StageProfile) -> AccessProfile:
    constants = [access for access in profile.accesses if access.buffer.constant]
    return max(constants, key=lambda access: access.buffer.num_bytes)


def _repeated_part(profile: StageProfile, access: AccessProfile) -> RepeatedPart:
    """The largest part of a size that is asked for: found from the innermost loop outwards."""
    nest, shape = profile.nest, profile.extents.shape[1]
    least, most = nest.ahead
    active = list(profile.active)
    parallel, spelled_out = nest.parallel[active], nest.unrolled[active]
    run, elements = np.ones(shape, dtype=np.float32), np.ones(shape, dtype=np.float32)
    going, repeats, exists = (np.full(shape, value) for value in (True, False, False))
    for number in reversed(range(len(profile.extents))):
        extent = profile.extents[number]
        stride = access.strides.get(number, np.zeros(shape, dtype=np.float32))
        live = extent > 1
        moving = live & (stride != 0)
        goes_on = going & moving & (stride == run)
        here = goes_on & repeats & (least <= run) & (run <= most)
        exists, elements = exists | here, np.where(here, run, elements)
        again = live & ~moving & ~parallel[number] & ~spelled_out[number]
        repeats = (repeats & ~moving) | (again & (number != profile.vector))
        going = going & ~(moving & ~goes_on) & ~(live & parallel[number])
        run = np.where(goes_on, run * extent, run)
    return RepeatedPart(exists, elements)


def waits(profile: StageProfile, cold: Floats, busy: Floats, cores: int) -> Floats:
    """`[P]`: cycles of waiting for weights that take `cold` cycles to stream, by a stage that is
    `busy` for so long with what is in caches.

    Measured on Zen 5: what is not fetched ahead is waited for, all of it; else only the first part
    of each core is, and what takes longer than the work.
    """
    part = part_ahead(profile)
    if not part.exists.any():
        return cold
    buffer = _largest_constant(profile).buffer
    share = part.elements * np.float32(cores * buffer.item_bytes / buffer.num_bytes)
    ahead = np.maximum(cold - busy, np.minimum(share, 1) * cold)
    result: Floats = np.where(part.exists, ahead, cold)
    return result
