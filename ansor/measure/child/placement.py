"""Arguments at the addresses that a new process gives them.

The C library gives an array of 128 KiB or more separate pages, so that all of these arrays begin at
the same offset within a page. A load then waits for an earlier store to another array, if the last
twelve bits of their addresses agree. Programs that load between stores, along rows of whole pages,
take up to 1.3 times as long as with arrays at other offsets. Users' arrays have equal offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ansor.measure.function_arguments import in_memory
from ansor.targets.host.memory import ALIGNMENT_BYTES, PAGE_BYTES, aligned, plain_block

OWN_PAGES_BYTES = 128 << 10  # glibc's M_MMAP_THRESHOLD at the start of a process


def as_allocated(arrays: Sequence[Any]) -> list[Any]:
    """Copies of NumPy arrays as TVM tensors of the host.

    Large arrays begin behind the header of a page's first chunk, small ones behind the last array.
    """
    starts, end = [], 0
    for array in arrays:
        if array.nbytes >= OWN_PAGES_BYTES:
            end = -(-end // PAGE_BYTES) * PAGE_BYTES + ALIGNMENT_BYTES
        starts.append(end)
        end += aligned(array.nbytes)
    block = plain_block(max(1, end))
    tensors = []
    for start, array in zip(starts, arrays, strict=True):
        memory = block[start : start + array.nbytes]
        memory[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        tensors.append(in_memory(memory, array))
    return tensors
