"""What a stage moves between the levels of the memory hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from ansor.features.profile import AccessProfile, StageProfile
from ansor.features.rows import (
    Floats,
    Numbers,
    all_inside,
    at_least,
    count,
    from_inside,
    row_of,
    summed,
)
from ansor.hardware.cpu import Hardware
from ansor.hardware.memory import PAGE_BYTES

# Bytes that could have come from the last cache in the time of a jump to the next run; from the
# second one jumps cost nothing. Fitted.
_JUMP_BYTES = 64.0
_STREAMS = 32.0  # runs side by side that a prefetcher still goes on with; fitted
_STAYS = 0.5  # share of the second cache up to which a run finds what the last one left; fitted
# Share of the last cache that holds what was used before: a copy of 8 MB is as fast as any, one of
# 20 MB takes twice as long, of 32 MB; it is shared, and pages lie in it as chance has it.
_LAST_HOLDS = 0.6
# Of the bytes that a stage writes, those that count between the first two caches: lines go out
# while others come in. Fitted.
_WRITTEN = 0.75
_IDLE = 0.8  # share of the unused sets that is lost to the other accesses; fitted

_Touched = tuple[AccessProfile, Floats]  # an access and the `[L + 1, P]` bytes of its lines


def traffic_bytes(profile: StageProfile, hardware: Hardware) -> list[Floats]:
    """`[P]` each: bytes that cross into each level of cache, jumps from the last one on included.

    At the outermost depth where everything fits, each loop further out brings in what its whole
    range touches; in the last level the buffers of all threads have to fit. What fits altogether
    comes in once; into the second level and from memory not at all, as runs are warm but for
    weights, which are counted apart.
    """
    line = np.float32(hardware.line_bytes)
    pairs = [(access, access.lines(hardware.line_bytes) * line) for access in profile.accesses]
    total = summed(size for _, size in pairs)
    room = _room(total, pairs, hardware)
    written = summed(size for access, size in pairs if access.is_write)
    jumps = summed(size * _jumps(access, line) for access, size in pairs)
    crossing = []
    threads = np.minimum(profile.parallel, np.float32(hardware.cores))
    level1, level2, last = hardware.cache_bytes
    levels = (
        (room, level1, total - np.float32(1 - _WRITTEN) * written),
        (room, level2, jumps),
        (_room_of_all(threads, room, pairs), _LAST_HOLDS * last, jumps),
    )
    for needed, capacity, moved in levels:
        fits_not = count(needed > np.float32(capacity))
        crossing.append(_touched_inside(profile, moved, fits_not))
    crossing[-1] = np.where(fits_not > 0, crossing[-1], np.float32(0))
    share = room[0] / threads  # the same each run
    stays = share < np.float32(_STAYS * hardware.cache_bytes[1])
    crossing[1] = np.where(stays, np.float32(0), crossing[1])
    return crossing


def _jumps(access: AccessProfile, line: np.float32) -> Floats:
    """`[L + 1, P]`: factor on the bytes of short runs, which no prefetcher foresees."""
    factor: Floats = np.float32(_JUMP_BYTES) / at_least(_swept(access), float(line))
    factor += 1
    return factor


def _swept(access: AccessProfile) -> Floats:
    """`[L + 1, P]`: bytes of a run that are touched without leaving it for long: loops outside
    of one that goes through too many runs lengthen them later, when they are forgotten."""
    few = access.footprint <= np.float32(_STREAMS) * access.run
    swept: Floats = from_inside(np.maximum, access.run_bytes * all_inside(few))
    return swept


def _room(total: Floats, pairs: Sequence[_Touched], hardware: Hardware) -> Floats:
    """`[L + 1, P]` bytes of a cache that are taken: the data, and the sets that rows with a bad
    stride keep from the others. What is read of several operands falls on the same sets and adds
    up; results are brought in seldom and do not."""
    idle = [(a.is_write, a.room(hardware.line_bytes) - size) for a, size in pairs]
    reads = [own for is_write, own in idle if not is_write]
    needs = [own for is_write, own in idle if is_write] + ([summed(reads)] if reads else [])
    taken: Floats = total + np.float32(_IDLE) * reduce(np.maximum, needs)
    return taken


def _room_of_all(threads: Floats, room: Floats, pairs: Sequence[_Touched]) -> Floats:
    """`[L + 1, P]`: the room of one thread, and of buffers that the others have for themselves."""
    together = room
    for access, size in pairs:
        if np.any(access.private):
            others: Floats = size * np.asarray(access.private) * (threads - 1)
            together = together + others
    return together


def _touched_inside(profile: StageProfile, amount: Floats, too_much: Numbers) -> Floats:
    """`[P]`: what the innermost loop that is too much touches, as often as it runs.

    Args:
        amount: `[L + 1, P]`: touched at each depth.
        too_much: `[P]`: number of depths at which it does not fit.
    """
    depth = np.maximum(too_much - 1, 0)
    return row_of(amount, depth) * row_of(profile.outer, depth)


def fetched_bytes(profile: StageProfile, cores: int) -> Floats:
    """`[P]`: bytes that a stage reads of what other threads may have written: of intermediate
    buffers that all threads share. They lie in another core's caches."""
    total = np.zeros(profile.extents.shape[1], dtype=np.float32)
    for access in profile.accesses:
        if cores > 1 and access.buffer.kind == "intermediate" and not access.is_write:
            total += np.where(access.private, np.float32(0), access.bytes[0])
    return total


def page_misses(profile: StageProfile, pages: int) -> Floats:
    """`[P]`: translations of addresses that a table of `pages` entries does not hold."""
    touched = summed(_pages(profile, access) for access in profile.accesses)
    too_much = count(touched > np.float32(pages))
    misses: Floats = np.where(too_much > 0, _touched_inside(profile, touched, too_much), 0)
    return misses.astype(np.float32)


def _pages(profile: StageProfile, access: AccessProfile) -> Floats:
    """`[L + 1, P]`: pages touched at each depth.

    Loops with short steps go on within pages, each step of the others finds pages of its own.
    """
    item, page = np.float32(access.buffer.item_bytes), np.float32(PAGE_BYTES)
    step = np.abs(access.moves[:-1]) * item
    short = step < page
    near, far = np.full_like(access.footprint, item), np.ones_like(access.footprint)
    near[:-1] = (profile.extents - 1) * step * short
    far[:-1] = np.where(short, np.float32(1), profile.extents)
    near, far = from_inside(np.add, near), from_inside(np.multiply, far)
    pages: Floats = np.minimum(np.ceil(near / page) * far, access.lines(PAGE_BYTES))
    return pages
