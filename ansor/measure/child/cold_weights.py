"""Weights as cold as in a network: each run of a kernel reads them at another place.

Deviation: the paper flushes all caches before a run. In a network only weights are cold. The caches
hold activations, which the function before has just written.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm

from ansor.measure.function_arguments import (
    in_memory,
    num_bytes,
    parameter_dtype,
    parameter_shape,
    small_floats,
)
from ansor.targets.host.memory import aligned, huge_block


class ColdMemory:
    """One block of memory in place of all weights of a network.

    Args:
        size_bytes: of the block; larger than the last cache, so that weights come from main memory.
        most: copies of a function's weights.
    """

    def __init__(self, size_bytes: int, most: int) -> None:
        self._size, self._most = size_bytes, most

    @cached_property
    def _block(self) -> npt.NDArray[np.uint8]:
        block = huge_block(self._size)
        block[:] = small_floats(np.random.default_rng(0), 1, len(block) // 4)
        return block

    def sets(self, params: Sequence[Any]) -> list[list[Any]]:
        """Tensors for the parameters `params`, in as many copies as the block has room for.

        A function with more weights than the block holds gets separate memory.
        """
        sizes = [num_bytes(p) for p in params]
        one = sum(map(aligned, sizes))
        if one > self._size:
            return [[_fresh(p) for p in params]]
        count = min(self._size // max(one, 1), self._most)
        return [self._copy(params, sizes, number * one) for number in range(count)]

    def _copy(self, params: Sequence[Any], sizes: Sequence[int], offset: int) -> list[Any]:
        tensors = []
        for param, size in zip(params, sizes, strict=True):
            tensors.append(in_memory(self._block[offset:], param))
            offset += aligned(size)
        return tensors


def _fresh(param: Any) -> Any:
    return tvm.runtime.tensor(np.ones(parameter_shape(param), dtype=parameter_dtype(param)))
