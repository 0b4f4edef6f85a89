"""Blocks of memory for weights."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.targets.host.memory import (
    ALIGNMENT_BYTES,
    HUGE_PAGE_BYTES,
    aligned,
    huge_block,
    plain_block,
)


@pytest.mark.parametrize("make", [huge_block, plain_block])
@pytest.mark.parametrize("size", [1, 64, 4096, HUGE_PAGE_BYTES - 1, 3 * HUGE_PAGE_BYTES + 5])
def test_a_block_is_zero_writable_and_begins_with_a_page(make: object, size: int) -> None:
    block = make(size)  # type: ignore[operator]
    assert block.shape == (size,)
    assert block.ctypes.data % HUGE_PAGE_BYTES == 0
    assert not block.any()
    block[...] = 7
    assert int(block.sum(dtype=np.int64)) == 7 * size


@given(st.integers(0, 10**9))
def test_aligned_is_the_next_multiple(size: int) -> None:
    assert aligned(size) % ALIGNMENT_BYTES == 0
    assert 0 <= aligned(size) - size < ALIGNMENT_BYTES


def test_pages_are_huge_where_the_system_gives_them() -> None:
    """Shared memory, which Python's `mmap` gives by default, has another setting of its own."""
    if not asked_pages_are_huge():
        pytest.skip("the system has no huge pages for who asks")
    block = huge_block(8 * HUGE_PAGE_BYTES)
    block[...] = 1
    assert huge_bytes(block.ctypes.data) >= 4 * HUGE_PAGE_BYTES
    plain = plain_block(8 * HUGE_PAGE_BYTES)
    plain[...] = 1
    assert huge_bytes(plain.ctypes.data) == 0


def asked_pages_are_huge() -> bool:
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return setting.exists() and "[madvise]" in setting.read_text()


def huge_bytes(address: int) -> int:
    """Of the mapping that an address lies in."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        bounds = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if bounds:
            inside = int(bounds[1], 16) <= address < int(bounds[2], 16)
        elif inside and line.startswith("AnonHugePages:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no such mapping")
