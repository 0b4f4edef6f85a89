"""Huge pages: measuring on the kind of memory that the result will run on."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

_MODE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_PR_SET_THP_DISABLE = 41  # linux/prctl.h


def plain_pages() -> bool:
    """Takes this process off huge pages where compiled networks do not get them either.

    Under "madvise", NumPy asks for huge pages and TVM does not; memory that NumPy has freed may
    then serve TVM, and a kernel that streams weights looks half again as fast as it will be.

    Returns:
        whether it did.
    """
    if sys.platform != "linux" or not _MODE.is_file() or "[madvise]" not in _MODE.read_text():
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0)
