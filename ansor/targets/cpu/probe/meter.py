"""The specification of a micro-benchmark, and the timing of its kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm

from ansor.targets.host.threads import free_cores, on_cores, running_threads

# Takes a kernel, a target and a number of runs. Returns a function that measures the least of
# several means over these runs, in seconds.
Meter = Callable[[tvm.IRModule, str, int], Callable[[], float]]

REPEATS = 7  # the best counts, because other work only makes a kernel slower


@dataclass(frozen=True)
class Spec:
    """The specification: target text, threads, bytes of a vector, bytes of the three cache
    levels."""

    target: str
    threads: int
    vector_bytes: int
    cache_bytes: tuple[int, int, int]

    @property
    def lanes(self) -> int:
        """fp32 elements of a vector."""
        return self.vector_bytes // 4


def seconds_meter(module: tvm.IRModule, target: str, number: int = 1) -> Callable[[], float]:
    """A function that measures seconds of the fastest run; all arguments are float32 arrays of
    zeros."""
    running_threads()  # code that is compiled before uses TVM's pool
    arrays = [_zeros(buffer) for buffer in module["main"].params]
    built: Any = tvm.compile(module, tvm.target.Target(target)).mod
    evaluator = built.time_evaluator("main", tvm.cpu(), number=number, repeat=REPEATS)
    built["main"](*arrays)  # wakes the threads

    def best_s() -> float:
        with on_cores(free_cores()):
            return float(min(evaluator(*arrays).results))

    return best_s


def _zeros(buffer: Any) -> Any:
    """Written zeros. Otherwise all pages would be the system's single page of zeros."""
    array = np.empty([int(size) for size in buffer.shape], dtype="float32")
    array.fill(0)
    return tvm.runtime.tensor(array)
