"""What the rest of a network does to a function's activations, for timing the function alone.

In a network a function reads what its producer has just written, each core a part of it, and writes
to memory that others have used. Timed on the same arrays again and again it would find all of it
where its own last run has left it, however it shares its work among the cores.
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
    """Other functions, as far as memory goes: each core rewrites one of as many contiguous parts.

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
        """Rewrites what `placed` gave, bit by bit as it is."""
        for words in activations:
            self._rewrite(words, self._nothing, words)
