"""Times of a program on a quiet machine, even if the machine is not quiet all the time.

Other work holds a core for some milliseconds at a time. It disturbs a repeat of many runs, but
often not a single short run. Short repeats replace disturbed ones.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ansor.config import MeasureConfig
from ansor.measure.child.timing_conditions import Conditions
from ansor.measure.result import Timing

Run = Callable[[int], float]  # mean seconds of a number of consecutive runs of a program


@dataclass(frozen=True)
class Repeats:
    """The repeats of a program's timing.

    Attributes:
        count: number of repeats.
        number: runs of a repeat.
        short: runs of a short repeat.
        slow_s: limit above which one repeat is enough.
    """

    count: int
    number: int
    short: int
    slow_s: float


@dataclass
class _Found:
    """Repeats by the state of the machine; `is_crowded`: threads have waited for a core."""

    quiet: list[float] = field(default_factory=list)
    disturbed: list[float] = field(default_factory=list)
    is_crowded: bool = False


def quiet_times(
    run: Run, repeats: Repeats, conditions: Conditions, config: MeasureConfig
) -> Timing:
    """Repeats of a program while the machine ran at full speed.

    A disturbed repeat is done again after a pause. If threads have waited for a core, and at most
    half of the repeats are quiet, short repeats replace them. If too few repeats of either kind are
    quiet, all count, and the timing is disturbed.
    """
    found = _whole(run, repeats, conditions, config)
    if found.is_crowded and 2 * len(found.quiet) <= repeats.count:
        return _beside_others(run, repeats, conditions, config, found.quiet + found.disturbed)
    if found.quiet:
        conditions.patience.restore()
    times = tuple(found.quiet or found.disturbed)
    return Timing(times, not found.quiet, conditions.reference_s)


def _beside_others(
    run: Run,
    repeats: Repeats,
    conditions: Conditions,
    config: MeasureConfig,
    whole: Sequence[float],
) -> Timing:
    """Short repeats, else repeats after the end of the other work, else a disturbed timing.

    Args:
        run: runs the program.
        repeats: how it is timed.
        conditions: the state of the machine.
        config: limits of the repeats and waits.
        whole: times of the usual repeats so far.
    """
    clean: list[float] = []
    every = list(whole)
    if repeats.short * min(whole) <= config.turn_s:
        clean, some = _short(run, repeats, conditions, config)
        every += some
    if len(clean) >= config.least_short * repeats.count:
        return Timing(_lower_quartiles(clean, repeats.count), False, conditions.reference_s)
    is_short = repeats.number * min(every) <= config.longest_waiting_s
    if conditions.patience.is_left and is_short and min(every) <= repeats.slow_s:
        quiet = _after_others(run, repeats, conditions, config)
        if quiet:
            return Timing(quiet, False, conditions.reference_s)
    return Timing(_lower_quartiles(every, repeats.count), True, conditions.reference_s)


def _after_others(
    run: Run, repeats: Repeats, conditions: Conditions, config: MeasureConfig
) -> tuple[float, ...]:
    """Repeats as soon as the machine is quiet; none if it is not in time."""
    quiet: list[float] = []
    end_s = time.perf_counter() + config.others_s
    while time.perf_counter() < end_s and len(quiet) < repeats.count:
        before = conditions.is_quiet()
        seconds, waited = _timed(run, repeats.number, conditions)
        if waited > config.delayed_share:
            quiet = quiet[:-1]
        if before and waited <= config.delayed_share and conditions.is_quiet():
            quiet.append(seconds)
        else:
            time.sleep(config.disturbed_pause_s)
    conditions.patience.note(bool(quiet))
    return tuple(quiet)


def _is_slow(quiet: Sequence[float], repeats: Repeats) -> bool:
    return bool(quiet) and quiet[0] > repeats.slow_s


def _whole(run: Run, repeats: Repeats, conditions: Conditions, config: MeasureConfig) -> _Found:
    """Repeats of the usual number of runs, until enough are quiet or too many are not.

    A thread that waits during a whole repeat is counted in the next one, so the repeat before a
    delay does not count as quiet.
    """
    found, end_s = _Found(), time.perf_counter() + config.others_s
    before, was_quiet = conditions.is_quiet(), False
    while len(found.quiet) < repeats.count and len(found.disturbed) <= config.disturbed_repeats:
        is_late = bool(found.disturbed) and time.perf_counter() > end_s
        if _is_slow(found.quiet, repeats) or found.is_crowded or is_late:
            break
        seconds, waited = _timed(run, repeats.number, conditions)
        after = conditions.is_quiet()
        found.is_crowded = waited > config.delayed_share
        is_quiet = before and after and not found.is_crowded
        if found.is_crowded and was_quiet:
            found.disturbed.append(found.quiet.pop())
        (found.quiet if is_quiet else found.disturbed).append(seconds)
        was_quiet = is_quiet
        if not after:
            time.sleep(config.disturbed_pause_s)
            after = conditions.is_quiet()
        before = after
    return found


def _timed(run: Run, number: int, conditions: Conditions) -> tuple[float, float]:
    """Mean seconds of some runs, and the share of them that threads have waited for a core."""
    before = conditions.delay()
    seconds = run(number)
    return seconds, (conditions.delay() - before) / (seconds * number)


def _short(
    run: Run, repeats: Repeats, conditions: Conditions, config: MeasureConfig
) -> tuple[list[float], list[float]]:
    """Short repeats without a delay, and all short repeats; for a slow program one group.

    A pause before a group lets the scheduler of the system prefer the threads of the program. A
    repeat does not count either if the next one has a delay: a thread that waits is counted later.
    """
    clean: list[float] = []
    every: list[float] = []
    end_s = time.perf_counter() + config.short_s
    while not every or (time.perf_counter() < end_s and len(clean) < config.short_repeats):
        time.sleep(config.short_pause_s)
        is_quiet = conditions.is_quiet()
        group = [_timed(run, repeats.short, conditions)]
        while len(group) < config.short_group and time.perf_counter() < end_s:
            group.append(_timed(run, repeats.short, conditions))
        every += [seconds for seconds, _ in group]
        if min(every) > repeats.slow_s:
            break
        if is_quiet:
            free = [waited <= config.delayed_share for _, waited in group]
            clean += [group[i][0] for i in range(len(group) - 1) if free[i] and free[i + 1]]
    return clean, every


def _lower_quartiles(values: Sequence[float], count: int) -> tuple[float, ...]:
    """The lower quartiles of up to `count` interleaved parts of the values."""
    parts = [values[i::count] for i in range(min(count, len(values)))]
    return tuple(
        statistics.quantiles(part, n=4, method="inclusive")[0] if len(part) > 1 else part[0]
        for part in parts
    )
