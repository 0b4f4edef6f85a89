"""Timing one built program."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import cycle, islice
from typing import Any, Protocol

from ansor.config import MeasureConfig
from ansor.measure.child.quiet_times import Repeats, Run, quiet_times
from ansor.measure.child.timing_conditions import Conditions, Watch
from ansor.measure.result import Timing
from ansor.targets.build import ENTRY
from ansor.targets.host.threads import free_cores, on_cores


class Timeable(Protocol):
    """A program that can be run and timed."""

    @property
    def others_s(self) -> float:
        """Seconds that each run takes beyond those of the program."""

    def total(self, number: int) -> float:
        """Seconds of `number` runs."""

    def run(self) -> Run:
        """Tells the mean seconds of some runs."""

    def conditions(self, first_s: float) -> Conditions:
        """The conditions for a program that runs for `first_s`."""


@dataclass(frozen=True, eq=False)
class Timed:
    """A program to be timed, and the way of timing.

    Attributes:
        module: the built program.
        device: that it runs on.
        sets: arguments; with several sets each run takes the next.
        others: imitates the functions before and after, see `neighbours`; on CPUs only.
        watch: detects disturbed repeats.
        flush_bytes: written before each run, to empty the caches of a GPU.
        layouts: if there is one set, copies of it at other addresses, one for each repeat. The
            addresses of pages affect the caches (by up to 15 % of a time).
        other_runs: runs of `others`; their median is the usual time.
    """

    module: Any
    device: Any
    sets: Sequence[Sequence[Any]]
    others: Callable[[], None] | None = None
    watch: Watch | None = None
    flush_bytes: int = 0
    layouts: Sequence[Sequence[Any]] = ()
    other_runs: int = MeasureConfig.other_runs

    @cached_property
    def turns(self) -> Iterator[Sequence[Any]]:
        """The sets in turns, over all timings: no run uses the weights of the run before."""
        return cycle(self.sets)

    @cached_property
    def others_s(self) -> float:
        """Usual seconds of the others; zero if there are none."""
        if self.others is None:
            return 0.0
        return statistics.median([_duration(self.others) for _ in range(self.other_runs)])

    def total(self, number: int) -> float:
        """Seconds of `number` runs, the sets of arguments in turns."""
        kernel, calls = self.module[ENTRY], list(islice(self.turns, number))
        if self.others is not None:
            return _among_others(kernel, calls, self.others, self.others_s)
        start = time.perf_counter()
        for arguments in calls:
            kernel(*arguments)
        self.device.sync()
        return time.perf_counter() - start

    def run(self) -> Run:
        """Tells the mean seconds of some runs; see `layouts` and `flush_bytes`."""
        if self.flush_bytes:
            return partial(_flushed, self)
        layouts = cycle([*self.sets[:1], *self.layouts])
        evaluator = cache(partial(self.module.time_evaluator, ENTRY, self.device, repeat=1))

        def run(number: int) -> float:
            if len(self.sets) > 1 or self.others is not None:
                return self.total(number) / number
            return float(evaluator(number=number)(*next(layouts)).results[0])

        return run

    def conditions(self, first_s: float) -> Conditions:
        """The conditions for a program that runs for `first_s`."""
        return self.watch.over(first_s) if self.watch else Conditions()


def time_program(timed: Timeable, best_s: float, config: MeasureConfig) -> Timing:
    """Times a program: once if it is slow, else in several repeats.

    Args:
        best_s: seconds of the fastest program so far, infinite if there is none.
        config: limits the ratio of a program's time to this one, in its first run (or first runs,
            if they are short) and in its first repeat.
    """
    with on_cores(free_cores()):
        first_s = _first(timed, best_s * config.abort_factor, config)
        if first_s > min(config.once_s, best_s * config.abort_factor):
            return _once(timed, first_s)
        number = runs_per_repeat(first_s + timed.others_s, config)
        repeats = 1 if first_s > config.long_run_s else config.repeats
        return _repeats(timed, number, repeats, first_s, config, best_s * config.repeat_factor)


def _once(timed: Timeable, seconds: float) -> Timing:
    """The timing of a program that is not repeated."""
    conditions = timed.conditions(seconds)
    return Timing((seconds,), not conditions.is_quiet(), conditions.reference_s)


def _first(timed: Timeable, limit_s: float, config: MeasureConfig) -> float:
    """Seconds of a first run, or the mean of several if cold caches and sleeping threads may
    dominate it."""
    first_s = timed.total(1)
    is_slow = first_s > limit_s
    if first_s >= (config.retry_below_s if is_slow else config.warm_below_s):
        return first_s
    number = runs_per_repeat(first_s + timed.others_s, config)
    return timed.total(number) / number


def time_round(timed: Timeable, config: MeasureConfig) -> Timing:
    """Times a program in a single repeat; a very slow one in its first run."""
    with on_cores(free_cores()):
        first_s = timed.total(1)
        if first_s > config.once_s:
            return _once(timed, first_s)
        number = runs_per_repeat(first_s + timed.others_s, config)
        return _repeats(timed, number, 1, first_s, config)


def runs_per_repeat(first_s: float, config: MeasureConfig) -> int:
    """Number of runs of a repeat, so that all repeats take about `min_time_s`."""
    wanted = config.min_time_s / config.repeats / max(first_s, 1e-9)
    return max(1, min(config.max_number, round(wanted)))


def _repeats(
    timed: Timeable,
    number: int,
    repeats: int,
    first_s: float,
    config: MeasureConfig,
    slow_s: float = math.inf,
) -> Timing:
    """Repeats of `number` runs of about `first_s` each; a single repeat beyond `slow_s`."""
    short = max(1, min(number, round(config.short_run_s / max(first_s, 1e-9))))
    wanted = Repeats(repeats, number, short, slow_s)
    return quiet_times(timed.run(), wanted, timed.conditions(first_s), config)


def _flushed(timed: Timed, number: int) -> float:
    """Mean seconds of runs with empty caches."""
    evaluator = timed.module.time_evaluator(
        ENTRY, timed.device, number=1, repeat=number, cache_flush_bytes=timed.flush_bytes
    )
    return statistics.fmean(evaluator(*timed.sets[0]).results)


def _among_others(
    kernel: Any, calls: Sequence[Sequence[Any]], others: Callable[[], None], usual_s: float
) -> float:
    """Seconds of runs on a CPU, plus the time of the others beyond their usual time. A core writes
    slowly to memory that another core has read."""
    own_s = others_s = 0.0
    for arguments in calls:
        start = time.perf_counter()
        kernel(*arguments)
        done = time.perf_counter()
        others()
        own_s += done - start
        others_s += time.perf_counter() - done
    return own_s + max(0.0, others_s - len(calls) * usual_s)


def _duration(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
