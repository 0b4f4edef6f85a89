"""Huge pages: for weights that networks stream from memory, and for arrays that are never timed.

Under Linux' default, "madvise", a program asks for them. Weights pass through the caches in each
run, and span more pages than the TLB of the processor holds. A network's weights therefore lie in
one block of huge pages, and so do their substitutes while programs are timed. Arrays that check
results are written once. Most of this time is spent on page faults, which huge pages make rare.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

PAGE_BYTES = 4096  # of x86-64; caches see higher address bits as random
HUGE_PAGE_BYTES = 2 << 20
LINE_BYTES = 64  # of the caches of x86-64 and of most Arm processors
ALIGNMENT_BYTES = 64  # of arrays in a block; what TVM's kernels rely on
# The environment of a process whose NumPy arrays have pages like TVM's. NumPy asks for huge pages,
# TVM does not, and either may reuse memory that the other has freed.
PLAIN_PAGES: Mapping[str, str] = MappingProxyType({"NUMPY_MADVISE_HUGEPAGE": "0"})


def huge_block(size_bytes: int) -> npt.NDArray[np.uint8]:
    """`[size_bytes]` zeros in huge pages, if the system has them."""
    return _block(size_bytes, huge=True)


def plain_block(size_bytes: int) -> npt.NDArray[np.uint8]:
    """`[size_bytes]` zeros in default pages."""
    return _block(size_bytes, huge=False)


def scratch_block(size_bytes: int) -> npt.NDArray[np.uint8]:
    """`[size_bytes]` zeros, in huge pages if they fill one."""
    return _block(size_bytes, huge=size_bytes >= HUGE_PAGE_BYTES)


def _block(size_bytes: int, huge: bool) -> npt.NDArray[np.uint8]:
    # Private memory: huge pages of shared memory have another setting, by default "never".
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1, size_bytes + HUGE_PAGE_BYTES, flags=flags)
    if huge and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    raw = np.frombuffer(memory, dtype=np.uint8)
    first = -raw.ctypes.data % HUGE_PAGE_BYTES
    return raw[first : first + size_bytes]


def aligned(size_bytes: int) -> int:
    """Bytes of an array in a block, up to the next possible begin."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
