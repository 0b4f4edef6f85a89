"""Timing one built program in place."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ansor.config import MeasureConfig
from ansor.measure.build import ENTRY


def time_program(
    module: Any, device: Any, arguments: list[Any], limit_s: float | None, config: MeasureConfig
) -> tuple[float, ...]:
    """Seconds of one run: a single entry for a slow program, else one per repeat.

    Args:
        limit_s: a program slower than this in its first run is not repeated.
    """
    run = _synchronous(module, device, arguments)
    first_s = _seconds(run)
    if limit_s is not None and first_s > limit_s:
        if first_s < config.retry_below_s:  # cold caches and sleeping threads may be to blame
            first_s = min(first_s, _seconds(run))
        if first_s > limit_s:
            return (first_s,)
    number = runs_per_repeat(first_s, config)
    return _evaluate(module, device, arguments, number, config.repeats)


def time_round(module: Any, device: Any, arguments: list[Any], config: MeasureConfig) -> float:
    """Seconds of one run, from a single repeat."""
    number = runs_per_repeat(_seconds(_synchronous(module, device, arguments)), config)
    return _evaluate(module, device, arguments, number, 1)[0]


def runs_per_repeat(first_s: float, config: MeasureConfig) -> int:
    """How many runs make one repeat so that all repeats take about `min_time_s`."""
    wanted = config.min_time_s / config.repeats / max(first_s, 1e-9)
    return max(1, min(config.max_number, round(wanted)))


def _evaluate(
    module: Any, device: Any, arguments: list[Any], number: int, repeats: int
) -> tuple[float, ...]:
    evaluator = module.time_evaluator(ENTRY, device, number=number, repeat=repeats)
    return tuple(float(t) for t in evaluator(*arguments).results)


def _synchronous(module: Any, device: Any, arguments: list[Any]) -> Callable[[], None]:
    kernel = module[ENTRY]

    def run() -> None:
        kernel(*arguments)
        device.sync()

    return run


def _seconds(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
