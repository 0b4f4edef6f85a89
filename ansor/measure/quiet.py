"""Whether the machine runs at full speed just now, and timing again where it did not.

Cores slow down for reasons outside this process: other work, or another virtual machine on the
other hyper-threads of the same physical cores, which costs up to half of the speed for seconds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tvm

from ansor.config import MeasureConfig
from ansor.hardware import kernels
from ansor.hardware.target import is_cpu
from ansor.hardware.threads import running_threads
from ansor.hardware.vectors import vector_unit

_ROUNDS = 1024  # of the multiply-adds: 0.1 ms
_FIRST = 8  # runs that the best is taken from before the first question


class Sentinel:
    """Work of known length, timed against its own best.

    Args:
        run: does the work and returns its seconds.
        slower: how many times its best it may take.
        best_s: what it is known to take at full speed.
    """

    def __init__(self, run: Callable[[], float], slower: float, best_s: float = math.inf) -> None:
        self._run, self._slower = run, slower
        self._best_s = min(best_s, *(run() for _ in range(_FIRST)))

    def is_quiet(self) -> bool:
        """Whether the work takes as long as it should, in the better of two tries."""
        seconds = min(self._run(), self._run())
        self._best_s = min(self._best_s, seconds)
        return seconds <= self._slower * self._best_s


def core_sentinel(target: str, config: MeasureConfig, peak_flops: float = 0.0) -> Sentinel | None:
    """One that occupies all threads of TVM's pool with multiply-adds; None where there is no pool.

    Args:
        target: text of the TVM target.
        peak_flops: of all threads at full speed, per second; 0 if it is not known.
    """
    resolved = tvm.target.Target(target)
    if not is_cpu(resolved):
        return None
    threads, lanes = running_threads(), _lanes(resolved)
    built: Any = tvm.compile(kernels.fma(threads, lanes, _ROUNDS), resolved).mod
    shapes = kernels.fma_shapes(threads, lanes)
    arrays = [tvm.runtime.tensor(np.zeros(shape, dtype=np.float32)) for shape in shapes]
    evaluator = built.time_evaluator("main", tvm.cpu(), number=1, repeat=1)
    flops = kernels.fma_flops(threads, lanes, _ROUNDS)
    best_s = flops / peak_flops if peak_flops else math.inf
    return Sentinel(lambda: float(evaluator(*arrays).results[0]), config.quiet_factor, best_s)


def _lanes(target: tvm.target.Target) -> int:
    return vector_unit(target).bytes // 4


def in_quiet(
    once: Callable[[], float], repeats: int, sentinel: Sentinel | None, config: MeasureConfig
) -> tuple[float, ...]:
    """What `once` returned while the machine ran at full speed, `repeats` times.

    Disturbed repeats are made up for, after a pause, as often as `config` says; where none was
    quiet, all of them count.

    Args:
        once: times something.
        sentinel: asked before and after; None for no question.
    """
    if sentinel is None:
        return tuple(once() for _ in range(repeats))
    quiet: list[float] = []
    disturbed: list[float] = []
    before = sentinel.is_quiet()
    while len(quiet) < repeats and len(disturbed) <= config.disturbed_repeats:
        seconds = once()
        after = sentinel.is_quiet()
        (quiet if before and after else disturbed).append(seconds)
        if not after:
            time.sleep(config.disturbed_pause_s)
            after = sentinel.is_quiet()
        before = after
    return tuple(quiet or disturbed)
