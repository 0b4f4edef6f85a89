"""Where arguments lie while a lone operator is timed."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st

from ansor.measure.child.placement import OWN_PAGES_BYTES, as_allocated
from ansor.targets.host.memory import ALIGNMENT_BYTES, PAGE_BYTES

LARGE = OWN_PAGES_BYTES // 4  # elements of four bytes


def drawn(*sizes: int, dtype: str = "float32") -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-9, 9, size).astype(dtype) for size in sizes]


def first_bytes(tensors: list[tvm.runtime.Tensor]) -> list[int]:
    return [np.from_dlpack(tensor).ctypes.data for tensor in tensors]


@given(st.lists(st.sampled_from([1, 7, 1000, LARGE - 1, LARGE, LARGE + 5, 3 * LARGE]), min_size=1))
def test_copies_that_do_not_overlap(sizes: list[int]) -> None:
    arrays = drawn(*sizes)
    tensors = as_allocated(arrays)
    firsts = first_bytes(tensors)
    ends = [first + array.nbytes for first, array in zip(firsts, arrays, strict=True)]
    assert all(end <= first for end, first in zip(ends, firsts[1:], strict=False))
    assert all(first % ALIGNMENT_BYTES == 0 for first in firsts)
    for array, tensor in zip(arrays, tensors, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)


def test_large_arrays_begin_alike_within_their_pages() -> None:
    firsts = first_bytes(as_allocated(drawn(3, LARGE + 9, 5, 4 * LARGE, LARGE)))
    assert len({firsts[i] % PAGE_BYTES for i in (1, 3, 4)}) == 1
    assert firsts[2] == firsts[1] + -(-4 * (LARGE + 9) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


@pytest.mark.parametrize("dtype", ["int8", "float64", "bool"])
def test_other_dtypes(dtype: str) -> None:
    arrays = [array.reshape(2, -1) for array in drawn(6, 2 * LARGE, dtype=dtype)]
    for array, tensor in zip(arrays, as_allocated(arrays), strict=True):
        assert str(tensor.dtype) == dtype
        np.testing.assert_array_equal(tensor.numpy(), array)
