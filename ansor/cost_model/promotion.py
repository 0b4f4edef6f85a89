"""Intermediate buffers that LLVM keeps in registers (its `mem2reg` and `SROA`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ansor.cost_model.compiled import CompiledLoops
from ansor.features.profile import AccessProfile, StageProfile
from ansor.features.rows import Bools, row_of
from ansor.hardware.cpu import Hardware

Promoted = Mapping[str, Bools]  # `[P]` of buffers; of others, never

_STACK_BYTES = 1024  # TVM's `kMaxStackAlloca`: what is larger is allocated while the program runs


def promoted_buffers(
    profiles: Mapping[str, StageProfile], loops: Mapping[str, CompiledLoops], hardware: Hardware
) -> Promoted:
    """The buffers inside loops that are never in memory: small ones, of which every access, of
    the stage that fills them and of those that read them, is to elements known when compiled."""
    found: dict[str, Bools] = {}
    for name, profile in profiles.items():
        for access in profile.accesses:
            if access.inside is not None and np.any(access.private):
                known = _known(profile, access, loops[name], hardware)
                found[access.buffer.name] = found.get(access.buffer.name, known) & known
    return found


def is_promoted(promoted: Promoted, access: AccessProfile) -> Bools | np.bool_:
    """`[P]` or a single answer for all: whether what is accessed lies in registers."""
    return promoted.get(access.buffer.name, np.False_)


def _known(
    profile: StageProfile, access: AccessProfile, loops: CompiledLoops, hardware: Hardware
) -> Bools:
    """`[P]`: whether one stage's access lets the buffer be kept: no loop is left that moves it,
    and there are registers for what it touches."""
    inside = np.asarray(access.inside)
    gone = loops.trips == 1
    if profile.vector is not None:
        gone[profile.vector] = True
    fixed = (~inside | ~access.moved | gone).all(axis=0)
    elements = row_of(access.footprint, len(inside) - inside.sum(axis=0))
    item_bytes = access.buffer.item_bytes
    registers = elements / np.minimum(loops.width, np.float32(hardware.lanes(item_bytes)))
    small = elements * np.float32(item_bytes) <= _STACK_BYTES
    enough = registers <= hardware.vector_registers
    known: Bools = np.asarray(access.private) & fixed & small & enough
    return known
