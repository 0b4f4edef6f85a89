"""Activations as other functions of a network leave them."""

from __future__ import annotations

import numpy as np
import pytest
import tvm

from ansor.measure.child.neighbours import Neighbours


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "bool"])
@pytest.mark.parametrize("shape", [(1,), (7, 3), (64, 33), (3, 1024)])
def test_memory_is_rewritten_as_it_was(shape: tuple[int, ...], dtype: str) -> None:
    neighbours = Neighbours("llvm")
    array = (np.random.default_rng(0).random(shape) * 100).astype(dtype)
    tensor, words = neighbours.placed(array)
    neighbours.visit([words])
    assert tuple(tensor.shape) == shape
    assert np.array_equal(np.from_dlpack(tensor), array)


def test_all_of_it_is_written() -> None:
    """With something else than nothing to add, every word of the array changes."""
    neighbours = Neighbours("llvm")
    tensor, words = neighbours.placed(np.arange(999, dtype=np.int32))
    neighbours._nothing = tvm.runtime.tensor(np.full(1, 5, dtype=np.int32))
    neighbours.visit([words])
    assert np.array_equal(np.from_dlpack(tensor), np.arange(5, 1004))


def test_numbers_that_are_none_survive() -> None:
    neighbours = Neighbours("llvm")
    array = np.array([np.nan, np.inf, -0.0, 1e-45], dtype=np.float32)
    tensor, words = neighbours.placed(array)
    neighbours.visit([words])
    assert np.from_dlpack(tensor).tobytes() == array.tobytes()
