"""The bytes that a stage moves between the levels of the memory hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ansor.features.loop_tables import (
    Bools,
    Floats,
    Numbers,
    all_inside,
    at_least,
    count,
    from_inside,
    row_of,
    summed,
)
from ansor.features.profile import AccessProfile, StageProfile
from ansor.targets.cpu.draft.constants import CoreConstants
from ansor.targets.cpu.machine import Hardware
from ansor.targets.host.memory import PAGE_BYTES

_Touched = tuple[AccessProfile, Floats]  # an access and the `[L + 1, P]` bytes of its lines


@dataclass(frozen=True, eq=False)
class Crossings:
    """The bytes of a stage that enter L1, L2 and the last cache.

    At the innermost depth whose data do not fit a level, each execution brings in all data of that
    depth. Data that fit a level as a whole enter it once. Runs of the program are warm: data that
    fit the last cache do not enter it again, and a small data set stays in L2 as well. Constant
    operands are cold; `cold_bytes` counts them.

    Attributes:
        profile: of the stage.
        fits_not: `[P]` for each level: number of depths that do not fit.
        lines: `[L + 1, P]`: bytes of the lines that each depth touches.
        with_jumps: `lines`, and the bytes that a level could deliver during jumps between runs of
            memory.
        stays: `[P]`: whether the data of a core stay in L2 until the next run of the program.
    """

    profile: StageProfile
    fits_not: tuple[Numbers, Numbers, Numbers]
    lines: Floats
    with_jumps: Floats
    stays: Bools

    @property
    def bytes(self) -> list[Floats]:
        """`[P]` for each level: bytes of lines."""
        return self._entering((self.lines, self.lines, self.lines))

    @property
    def charged_bytes(self) -> list[Floats]:
        """`[P]` for each level: bytes that count. Jumps add bytes to the transfers into L2 and into
        the last cache."""
        return self._entering((self.lines, self.with_jumps, self.with_jumps))

    def _entering(self, moved: tuple[Floats, Floats, Floats]) -> list[Floats]:
        level1, level2, last = (
            _touched_inside(self.profile, amount, depths)
            for amount, depths in zip(moved, self.fits_not, strict=True)
        )
        last = np.where(self.fits_not[-1] > 0, last, np.float32(0))
        return [level1, np.where(self.stays, np.float32(0), level2), last]


def traffic_bytes(profile: StageProfile, hardware: Hardware, core: CoreConstants) -> list[Floats]:
    """`[P]` each: bytes that count as entering L1, L2 and the last cache, see `Crossings`."""
    return crossings(profile, hardware, core).charged_bytes


def crossings(profile: StageProfile, hardware: Hardware, core: CoreConstants) -> Crossings:
    """Bytes of a stage that enter the caches. The last cache must hold the private buffers of all
    threads."""
    line = np.float32(hardware.line_bytes)
    pairs = [(access, access.lines(hardware.line_bytes) * line) for access in profile.accesses]
    total = summed(size for _, size in pairs)
    room = _room(total, pairs, hardware, core)
    with_jumps = summed(size * _jump_factor(access, line, core) for access, size in pairs)
    threads = np.minimum(profile.parallel, np.float32(hardware.cores))
    level1, level2, last = hardware.cache_bytes
    all_room = _room_of_all(threads, room, pairs)
    fits_not = (
        count(room > np.float32(level1)),
        count(room > np.float32(level2)),
        count(all_room > np.float32(core.usable_last_cache_share * last)),
    )
    share = room[0] / threads  # the same in each run of the program
    stays = share < np.float32(core.warm_l2_share * level2)
    return Crossings(profile, fits_not, total, with_jumps, stays)


def _jump_factor(access: AccessProfile, line: np.float32, core: CoreConstants) -> Floats:
    """`[L + 1, P]`: factor on the bytes of an access for its jumps; no prefetcher predicts the
    start of a run."""
    factor: Floats = np.float32(core.jump_bytes) / at_least(_swept(access, core), float(line))
    factor += 1
    return factor


def _swept(access: AccessProfile, core: CoreConstants) -> Floats:
    """`[L + 1, P]`: bytes of a run as a prefetcher sees it.

    A prefetcher follows a limited number of runs. A loop that interleaves more of them ends each
    run, even if an outer loop continues it.
    """
    few = access.footprint <= np.float32(core.prefetcher_streams) * access.run
    swept: Floats = from_inside(np.maximum, access.run_bytes * all_inside(few))
    return swept


def _room(
    total: Floats, pairs: Sequence[_Touched], hardware: Hardware, core: CoreConstants
) -> Floats:
    """`[L + 1, P]`: bytes of a cache that the accesses occupy.

    Rows with a bad stride reach few sets, and the other sets are lost. The losses of several reads
    add up, because their rows compete for the same sets. A write does not add to them, because its
    lines come in seldom.
    """
    idle = [(a.is_write, a.room(hardware.line_bytes) - size) for a, size in pairs]
    reads = [lost for is_write, lost in idle if not is_write]
    losses = [lost for is_write, lost in idle if is_write] + ([summed(reads)] if reads else [])
    taken: Floats = total + np.float32(core.idle_set_share) * reduce(np.maximum, losses)
    return taken


def _room_of_all(threads: Floats, room: Floats, pairs: Sequence[_Touched]) -> Floats:
    """`[L + 1, P]`: bytes of a cache that all threads occupy: the room of one thread, and the
    private buffers of each further thread."""
    together = room
    for access, size in pairs:
        if np.any(access.private):
            further: Floats = size * np.asarray(access.private) * (threads - 1)
            together = together + further
    return together


def _touched_inside(profile: StageProfile, amount: Floats, too_much: Numbers) -> Floats:
    """`[P]`: the amount at the innermost depth that does not fit, times the iterations outside it.

    Args:
        amount: `[L + 1, P]`: amount that each depth touches.
        too_much: `[P]`: number of depths that do not fit.
    """
    depth = np.maximum(too_much - 1, 0)
    return row_of(amount, depth) * row_of(profile.outer, depth)


def fetched_bytes(profile: StageProfile, cores: int) -> Floats:
    """`[P]`: bytes that a stage reads from the caches of other cores. These are the bytes of
    intermediate buffers that all threads share."""
    total = np.zeros(profile.extents.shape[1], dtype=np.float32)
    for access in profile.accesses:
        if cores > 1 and access.buffer.kind == "intermediate" and not access.is_write:
            total += np.where(access.private, np.float32(0), access.bytes[0])
    return total


def page_misses(profile: StageProfile, pages: int) -> Floats:
    """`[P]`: address translations that miss a TLB of `pages` entries."""
    touched = summed(_pages(profile, access) for access in profile.accesses)
    too_much = count(touched > np.float32(pages))
    misses: Floats = np.where(too_much > 0, _touched_inside(profile, touched, too_much), 0)
    return misses.astype(np.float32)


def _pages(profile: StageProfile, access: AccessProfile) -> Floats:
    """`[L + 1, P]`: pages that each depth touches.

    A loop with a step below the page size stays within pages. Each iteration of another loop
    touches new pages.
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
