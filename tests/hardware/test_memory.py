"""Blocks of memory for weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.hardware.memory import (
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
