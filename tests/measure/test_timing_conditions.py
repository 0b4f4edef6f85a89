"""Programs that are timed beside other work are timed again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from ansor.config import MeasureConfig
from ansor.measure.child.quiet_times import Repeats, quiet_times
from ansor.measure.child.timing_conditions import (
    Conditions,
    Sentinel,
    Watch,
    core_sentinel,
    watch_over,
)
from ansor.measure.result import Timing

CONFIG = MeasureConfig(disturbed_repeats=3, disturbed_pause_s=0.0)
FIRST = [1.0] * 8  # what the best is taken from


def returning(values: Iterable[float]) -> Callable[[], float]:
    """A function that returns one value after the other."""
    left = iter(values)
    return lambda: next(left)


def answering(*quiet: bool) -> Sentinel:
    """A sentinel that answers so; it tries twice before it says no."""
    tries = [time for answer in quiet for time in ((1.0, 2.0) if answer else (2.0, 2.0))]
    return Sentinel(returning([*FIRST, *tries]), 1.25)


def timing(
    times: Iterable[float], count: int, sentinels: Sequence[Sentinel], slow_s: float = math.inf
) -> Timing:
    """The timing of repeats with these times, without a thread that waits for a core."""
    once = returning(times)
    repeats = Repeats(count, number=10, short=1, slow_s=slow_s)
    return quiet_times(lambda number: once(), repeats, Conditions(tuple(sentinels)), CONFIG)


def in_quiet(
    times: Iterable[float], count: int, sentinels: Sequence[Sentinel], slow_s: float = math.inf
) -> tuple[float, ...]:
    return timing(times, count, sentinels, slow_s).latencies_s


def test_without_a_sentinel_everything_counts() -> None:
    assert in_quiet([3.0, 9.0, 4.0], 3, []) == (3.0, 9.0, 4.0)


def test_a_quiet_machine_costs_no_repeat() -> None:
    sentinel = answering(True, True, True)
    assert in_quiet([3.0, 4.0], 2, [sentinel]) == (3.0, 4.0)


def test_what_was_disturbed_is_made_up_for() -> None:
    # Before the first; after it (disturbed), and after the pause; after the second and third.
    sentinel = answering(True, False, True, True, True)
    assert in_quiet([9.0, 3.0, 4.0], 2, [sentinel]) == (3.0, 4.0)


def test_what_began_disturbed_does_not_count() -> None:
    sentinel = answering(False, True, True)
    assert in_quiet([9.0, 3.0], 1, [sentinel]) == (3.0,)


def test_a_machine_that_stays_busy_is_timed_as_it_is() -> None:
    sentinel = answering(*[False] * 9)
    assert in_quiet([7.0, 8.0, 9.0, 6.0], 2, [sentinel]) == (7.0, 8.0, 9.0, 6.0)


def test_the_best_is_learned_or_known() -> None:
    slow_start = Sentinel(returning([2.0] * 8 + [2.0, 2.0, 1.0, 1.0, 2.0, 2.0]), 1.25)
    assert [slow_start.is_quiet() for _ in range(3)] == [True, True, False]
    told = Sentinel(returning([2.0] * 8 + [2.0, 2.0]), 1.25, best_s=1.0)
    assert not told.is_quiet()


def test_one_for_the_cores() -> None:
    patient = MeasureConfig(quiet_factor=1000.0)
    sentinel = core_sentinel("llvm", patient)
    assert sentinel is not None
    assert sentinel.is_quiet()
    impossible = core_sentinel("llvm", patient, peak_flops=1e18)
    assert impossible is not None
    assert not impossible.is_quiet()


def test_none_for_a_device() -> None:
    assert core_sentinel("cuda", CONFIG) is None
    assert watch_over("cuda", CONFIG) is None


def test_any_of_several_can_tell_of_a_disturbance() -> None:
    sentinels = [answering(True, True, True, True), answering(True, False, True, True)]
    assert in_quiet([9.0, 3.0], 1, sentinels) == (3.0,)


def test_patience_ends_and_comes_back() -> None:
    slow, quick = (2.0, 2.0), (1.0, 1.0)
    tries = [*slow, *slow, *slow, *quick, *slow, *slow]
    sentinel = Sentinel(returning([*FIRST, *tries]), 1.25, patience=2)
    assert [sentinel.is_quiet() for _ in range(6)] == [False, False, True, True, False, True]


def test_the_start_of_threads_matters_to_short_programs() -> None:
    watch = watch_over("llvm", CONFIG)
    assert watch is not None
    assert watch.over(1e-5).sentinels == (watch.cores, watch.starts)
    assert watch.over(1e-3).sentinels == (watch.cores,)
    assert Watch(watch.cores, CONFIG).over(1e-5).sentinels == (watch.cores,)


def test_starts_are_compared_with_the_least() -> None:
    impossible = watch_over("llvm", MeasureConfig(far_factor=0.0))
    assert impossible is not None
    assert not impossible.starts.is_quiet()


def test_what_is_slow_is_not_repeated() -> None:
    times = [5.0, 3.0, 3.1, 2.9]
    assert in_quiet(times, 3, [], slow_s=4.9) == (5.0,)
    assert in_quiet(times, 3, [], slow_s=5.0) == (5.0, 3.0, 3.1)
    sentinel = answering(True, False, True, True)  # the first is disturbed and says nothing
    assert in_quiet([9.0, 5.0], 3, [sentinel], slow_s=4.9) == (5.0,)
