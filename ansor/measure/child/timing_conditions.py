"""Whether the machine runs at full speed.

Cores slow down for reasons outside this process. Other work is one. Another virtual machine on the
other hyper-threads of the physical cores takes up to half of the speed for seconds. A host also
moves virtual cores. If two of them do not share a cache, threads take twice as long to start, and
short programs up to twice as long to run. The cores still compute at full speed.

Other work of the same system holds a core for milliseconds. Waiting threads count this delay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import tvm

from ansor.config import MeasureConfig
from ansor.targets.cpu.probe import benchmark_kernels
from ansor.targets.cpu.vectors import vector_unit
from ansor.targets.host.run_delay import RunDelay
from ansor.targets.host.threads import running_threads
from ansor.targets.registry import backend_of, code_target


class Sentinel:
    """Work of known length, timed against its own best.

    Args:
        run: does the work and returns its seconds.
        slower: largest ratio of its seconds to its best.
        best_s: its seconds at full speed, if they are known.
        patience: excess of negative over positive answers after which an answer is positive.
        first_runs: of the work, for its best time before the first question.

    Attributes:
        last_s: seconds of the work at the last answer; its best before the first one.
    """

    def __init__(
        self,
        run: Callable[[], float],
        slower: float,
        best_s: float = math.inf,
        patience: float = math.inf,
        first_runs: int = MeasureConfig.watch_runs,
    ) -> None:
        self._run, self._slower = run, slower
        self._best_s = min(best_s, *(run() for _ in range(first_runs)))
        self._patience = self._left = patience
        self.last_s = self._best_s

    def seconds(self, runs: int) -> float:
        """The shortest of `runs` runs of the work."""
        return min(self._run() for _ in range(runs))

    def is_quiet(self) -> bool:
        """Whether the work is fast enough, in the better of two runs."""
        seconds = self.last_s = min(self._run(), self._run())
        self._best_s = min(self._best_s, seconds)
        quiet = seconds <= self._slower * self._best_s
        if not quiet and self._left < 1:
            return True
        self._left = min(self._patience, self._left + (1 if quiet else -1))
        return quiet


@dataclass(frozen=True)
class Watch:
    """The tests around each repeat on a CPU.

    Attributes:
        cores: tests whether they compute at full speed.
        target: text of the TVM target; empty for no test of the start of threads.
        delay: counts the seconds that threads of this process have waited for a core.
    """

    cores: Sentinel
    config: MeasureConfig
    target: str = ""
    delay: RunDelay = field(default_factory=RunDelay)

    @cached_property
    def patience(self) -> Patience:
        """The patience for the end of other work, shared by all programs."""
        return Patience(self.config.vain_waits)

    @cached_property
    def starts(self) -> Sentinel:
        """Tests whether cores are near each other, while waiting for that is worthwhile."""
        config = self.config
        made_for = code_target(self.target)
        threads, lanes = running_threads(), _lanes(made_for)
        run = _runs(
            benchmark_kernels.fma(threads, lanes, config.start_rounds),
            made_for,
            config.thread_starts,
        )
        return Sentinel(
            run,
            config.far_factor,
            patience=config.far_patience,
            first_runs=config.watch_runs,
        )

    def over(self, seconds: float) -> Conditions:
        """The conditions for a program that runs for `seconds`."""
        is_short = self.target and seconds < self.config.far_below_s
        sentinels = (self.cores, self.starts) if is_short else (self.cores,)
        return Conditions(sentinels, self.delay.seconds, self.patience)


class Patience:
    """Whether waiting for the end of other work is worthwhile.

    Args:
        waits: number of unsuccessful waits in a row after which programs wait no longer.
    """

    def __init__(self, waits: int) -> None:
        self._waits = self._left = waits

    @property
    def is_left(self) -> bool:
        """Whether one more wait is allowed."""
        return self._left > 0

    def note(self, helped: bool) -> None:
        """Registers the outcome of a wait."""
        self._left = self._waits if helped else self._left - 1

    def restore(self) -> None:
        """Allows all waits again."""
        self._left = self._waits


def no_delay() -> float:
    """Zero, for a system that does not count delays."""
    return 0.0


@dataclass(frozen=True)
class Conditions:
    """The state of the machine while one program is timed.

    Attributes:
        sentinels: the machine is quiet if all of them say so.
        delay: seconds that threads of this process have waited for a core, in all.
        patience: for the end of other work.
    """

    sentinels: Sequence[Sentinel] = ()
    delay: Callable[[], float] = no_delay
    patience: Patience = field(default_factory=lambda: Patience(MeasureConfig.vain_waits))

    def is_quiet(self) -> bool:
        """Whether the machine runs at full speed."""
        return all(sentinel.is_quiet() for sentinel in self.sentinels)

    @property
    def reference_s(self) -> float | None:
        """Seconds of the first sentinel's work at its last answer; None without a sentinel."""
        return self.sentinels[0].last_s if self.sentinels else None


def watch_over(target: str, config: MeasureConfig) -> Watch | None:
    """The tests on a CPU; None for other devices."""
    cores = core_sentinel(target, config)
    return None if cores is None else Watch(cores, config, target)


def core_sentinel(target: str, config: MeasureConfig, peak_flops: float = 0.0) -> Sentinel | None:
    """A sentinel that occupies all threads of TVM's pool with multiply-adds; None without a pool.

    Args:
        target: text of the TVM target.
        peak_flops: of all threads at full speed, per second; 0 if it is not known.
    """
    if not backend_of(target).execution.on_host:
        return None
    made_for = code_target(target)
    threads, lanes = running_threads(), _lanes(made_for)
    flops = benchmark_kernels.fma_flops(threads, lanes, config.core_rounds)
    best_s = flops / peak_flops if peak_flops else math.inf
    run = _runs(benchmark_kernels.fma(threads, lanes, config.core_rounds), made_for, 1)
    return Sentinel(run, config.quiet_factor, best_s, first_runs=config.watch_runs)


def _runs(module: tvm.IRModule, target: tvm.target.Target, number: int) -> Callable[[], float]:
    """A function that returns the mean seconds of `number` runs on float32 arrays of zeros."""
    shapes = [tuple(int(size) for size in buffer.shape) for buffer in module["main"].params]
    arrays = [tvm.runtime.tensor(np.zeros(shape, dtype=np.float32)) for shape in shapes]
    built: Any = tvm.compile(module, target).mod
    evaluator = built.time_evaluator("main", tvm.cpu(), number=number, repeat=1)
    return lambda: float(evaluator(*arrays).results[0])


def _lanes(target: tvm.target.Target) -> int:
    return vector_unit(target).bytes // 4
