"""Imitates the rest of a network's effect on a function's activations, to time the function alone.

In a network, a function reads activations that its producer has just written, each core a part. It
writes to memory that other functions have used. If it is timed repeatedly on the same arrays, each
core finds its data in its own caches, for any distribution of the work among the cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm

from ansor.measure.function_arguments import in_memory
from ansor.targets.cpu.probe import benchmark_kernels
from ansor.targets.host.memory import LINE_BYTES, plain_block
from ansor.targets.host.threads import running_threads
from ansor.targets.registry import code_target


class Neighbours:
    """The memory accesses of other functions: each core rewrites a contiguous part of an array.

    Args:
        target: text of the TVM target.
    """

    def __init__(self, target: str) -> None:
        self._parts = running_threads()
        built: Any = tvm.compile(benchmark_kernels.rewrite(self._parts), code_target(target)).mod
        self._rewrite = built["main"]
        self._nothing = tvm.runtime.tensor(np.zeros(1, dtype=np.int32))

    def placed(self, array: Any) -> tuple[Any, Any]:
        """A tensor with the array's values, and the words of its memory, for `visit`."""
        unit = self._parts * LINE_BYTES
        memory = plain_block(-(-max(array.nbytes, 1) // unit) * unit)
        memory[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        words = memory.view(np.int32).reshape(self._parts, -1)
        return in_memory(memory, array), tvm.runtime.from_dlpack(words)

    def visit(self, activations: Sequence[Any]) -> None:
        """Rewrites the words of `placed` without a change of their values."""
        for words in activations:
            self._rewrite(words, self._nothing, words)
