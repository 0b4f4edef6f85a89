"""Asks Linux for the permission to use registers of tiles (AMX)."""

from __future__ import annotations

import ctypes
import os
import platform
from functools import cache

# Linux, x86-64: asm/prctl.h and asm/unistd_64.h; 18 is the number of the state of tiles.
_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18


@cache
def why_no_tiles() -> str | None:
    """The reason why this process may not use tiles; None if it may.

    The function asks the system once. Without the permission, the first instruction on tiles ends a
    process. A virtual machine may show the processor's flags and refuse. Linux also refuses if a
    signal handler's stack is too small for the state of tiles.
    """
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return "only Linux on x86-64 is asked for the permission to use tiles"
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0:
        return None
    return f"the system refuses tiles: {os.strerror(ctypes.get_errno())}"
