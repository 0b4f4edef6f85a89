"""Timing one built program in place."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

from ansor.config import MeasureConfig
from ansor.hardware.threads import free_cores, on_cores
from ansor.measure.build import ENTRY
from ansor.measure.quiet import Sentinel, in_quiet

Arguments = Sequence[Sequence[Any]]  # sets of arguments, taken in turns


def time_program(
    module: Any,
    device: Any,
    sets: Arguments,
    limit_s: float | None,
    config: MeasureConfig,
    sentinel: Sentinel | None = None,
) -> tuple[float, ...]:
    """Seconds of one run: a single entry for a slow program, else one per repeat.

    Args:
        sets: arguments; with several sets each run takes the next.
        limit_s: a program slower than this in its first run is not repeated.
        sentinel: tells which repeats were disturbed.
    """
    first_s = _seconds(module, device, sets, 1)
    if limit_s is not None and first_s > limit_s:
        if first_s < config.retry_below_s:  # cold caches and sleeping threads may be to blame
            first_s = min(first_s, _seconds(module, device, sets, 1))
        if first_s > limit_s:
            return (first_s,)
    number = runs_per_repeat(first_s, config)
    repeats = 1 if first_s > config.long_run_s else config.repeats
    return _repeats(module, device, sets, number, repeats, sentinel, config)


def time_round(
    module: Any,
    device: Any,
    sets: Arguments,
    config: MeasureConfig,
    sentinel: Sentinel | None = None,
) -> float:
    """Seconds of one run, from a single repeat."""
    number = runs_per_repeat(_seconds(module, device, sets, 1), config)
    return min(_repeats(module, device, sets, number, 1, sentinel, config))


def runs_per_repeat(first_s: float, config: MeasureConfig) -> int:
    """How many runs make one repeat so that all repeats take about `min_time_s`."""
    wanted = config.min_time_s / config.repeats / max(first_s, 1e-9)
    return max(1, min(config.max_number, round(wanted)))


def _repeats(
    module: Any,
    device: Any,
    sets: Arguments,
    number: int,
    repeats: int,
    sentinel: Sentinel | None,
    config: MeasureConfig,
) -> tuple[float, ...]:
    """Mean seconds of `number` runs, `repeats` times."""
    evaluator = module.time_evaluator(ENTRY, device, number=number, repeat=1)

    def once() -> float:
        if len(sets) > 1:
            return _seconds(module, device, sets, number) / number
        return float(evaluator(*sets[0]).results[0])

    with on_cores(free_cores()):
        return in_quiet(once, repeats, sentinel, config)


def _seconds(module: Any, device: Any, sets: Arguments, number: int) -> float:
    """Seconds of `number` runs, the sets of arguments in turns."""
    kernel = module[ENTRY]
    calls = list(islice(cycle(sets), number))
    start = time.perf_counter()
    for arguments in calls:
        kernel(*arguments)
    device.sync()
    return time.perf_counter() - start
