"""Intermediate buffers that LLVM promotes to registers (passes `mem2reg` and `SROA`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ansor.features.loop_tables import Bools, row_of
from ansor.features.profile import AccessProfile, StageProfile
from ansor.targets.cpu.draft.compiled import CompiledLoops
from ansor.targets.cpu.draft.constants import CompilerConstants
from ansor.targets.cpu.machine import Hardware

Promoted = Mapping[str, Bools]  # buffer to `[P]`; an absent buffer is never promoted


def promoted_buffers(
    profiles: Mapping[str, StageProfile],
    loops: Mapping[str, CompiledLoops],
    hardware: Hardware,
    compiler: CompilerConstants,
) -> Promoted:
    """The intermediate buffers that never reach memory.

    Such a buffer is small and is allocated inside loops. Every access of its producer and of its
    consumers has an index that is known at compile time. Instructions on tiles exchange data with
    vectors through memory only.
    """
    promoted: dict[str, Bools] = {}
    for name, profile in profiles.items():
        for access in profile.accesses:
            if access.inside is not None and np.any(access.private):
                allowed = np.zeros_like(access.private)
                if name in loops:
                    allowed = _allows_promotion(profile, access, loops[name], hardware, compiler)
                buffer = access.buffer.name
                promoted[buffer] = promoted.get(buffer, allowed) & allowed
    return promoted


def is_promoted(promoted: Promoted, access: AccessProfile) -> Bools | np.bool_:
    """`[P]`, or one value for all programs: whether the accessed buffer lies in registers."""
    return promoted.get(access.buffer.name, np.False_)


def _allows_promotion(
    profile: StageProfile,
    access: AccessProfile,
    loops: CompiledLoops,
    hardware: Hardware,
    compiler: CompilerConstants,
) -> Bools:
    """`[P]`: whether one access of a stage allows the promotion of its buffer.

    No loop that moves the access remains in the machine code, and the elements fit the registers.
    """
    inside = np.asarray(access.inside)
    gone = loops.trips == 1
    if profile.vector is not None:
        gone[profile.vector] = True
    fixed = (~inside | ~access.moved | gone).all(axis=0)
    elements = row_of(access.footprint, len(inside) - inside.sum(axis=0))
    item_bytes = access.buffer.item_bytes
    registers = elements / np.minimum(loops.width, np.float32(hardware.lanes(item_bytes)))
    small = elements * np.float32(item_bytes) <= compiler.most_stack_bytes
    enough = registers <= hardware.vector_registers
    allowed: Bools = np.asarray(access.private) & fixed & small & enough
    return allowed
