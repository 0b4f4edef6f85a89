"""Times of a program beside work that holds a core, on a simulated system."""

from __future__ import annotations

import math
import os
import random
import statistics
import sys

import pytest
from clock import with_clock

from ansor.config import MeasureConfig
from ansor.measure.child import quiet_times as quiet_times_module
from ansor.measure.child.quiet_times import Repeats, quiet_times
from ansor.measure.child.timing_conditions import Conditions, Patience, Sentinel, Watch
from ansor.measure.result import Timing
from ansor.targets.host.run_delay import RunDelay

CONFIG = MeasureConfig()
RUN_S = 5e-4
SLICE_S = 3e-3


class System:
    """A busy loop has one of two cores for every second slice of time.

    A program runs half as fast then. The thread that waits is counted when it gets its core.
    """

    def __init__(self, patch: pytest.MonkeyPatch, seed: int = 0) -> None:
        self.clock = with_clock(patch, quiet_times_module)
        self.is_busy = True
        self.turn_s = math.inf  # of the busy loop, and of its rest
        self.patience = Patience(CONFIG.vain_waits)
        self.runs = 0
        self._random = random.Random(seed)
        self._counted_s = 0.0

    def _held_until(self) -> float | None:
        """When the busy loop gives its core back; None where it has none now."""
        number = int(self.clock.now_s / SLICE_S)
        rests = int(self.clock.now_s / self.turn_s) % 2 == 1
        return (number + 1) * SLICE_S if self.is_busy and number % 2 and not rests else None

    def run(self, number: int) -> float:
        """Mean seconds of some runs."""
        began_s = self.clock.now_s
        for _ in range(number):
            self.runs += 1
            left_s = RUN_S * self._random.uniform(1.0, 1.02)
            while left_s > 1e-12:
                end_s = self._held_until() or (int(self.clock.now_s / SLICE_S) + 1) * SLICE_S
                slower = 2.0 if self._held_until() else 1.0
                step_s = min(max(end_s - self.clock.now_s, 1e-7), left_s * slower)
                self._counted_s += step_s if slower > 1 else 0.0
                left_s -= step_s / slower
                self.clock.sleep(step_s)
        return (self.clock.now_s - began_s) / number

    def delay(self) -> float:
        """The counted delay, without that of a thread that still waits."""
        return 0.0 if self._held_until() and self.runs == 0 else self._counted_s

    def timing(self, run_s: float = RUN_S, slow_s: float = 1.0) -> Timing:
        self.clock.sleep(self._random.uniform(0, 4 * SLICE_S))
        number = max(1, round(CONFIG.min_time_s / CONFIG.repeats / run_s))
        repeats = Repeats(CONFIG.repeats, number, max(1, round(CONFIG.short_run_s / run_s)), slow_s)
        return quiet_times(self.run, repeats, Conditions((), self.delay, self.patience), CONFIG)


def test_a_busy_loop_half_of_the_time_changes_a_latency_by_less_than_five_per_cent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system, found = System(monkeypatch), []
    for number in range(30):
        system.is_busy = number % 2 == 1
        found.append(system.timing())
    assert not any(timing.disturbed for timing in found)
    latencies = [timing.latency_s for timing in found]
    assert (max(latencies) - min(latencies)) / statistics.median(latencies) <= 0.05
    assert statistics.median(latencies) == pytest.approx(RUN_S, rel=0.02)


def test_a_quiet_system_costs_no_short_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    system = System(monkeypatch)
    system.is_busy = False
    timing = system.timing()
    number = round(CONFIG.min_time_s / CONFIG.repeats / RUN_S)
    assert (len(timing.latencies_s), system.runs) == (CONFIG.repeats, CONFIG.repeats * number)


def test_the_repeat_before_a_delay_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread waits during a whole repeat, and the system counts it when the thread runs."""
    clock = with_clock(monkeypatch, quiet_times_module)
    waited_s, whole = 0.0, 0

    def run(number: int) -> float:
        nonlocal waited_s, whole
        seconds = 2e-4 if number == 10 else 1e-4
        whole += number == 10
        waited_s += 1.0 if whole == 2 and number == 10 else 0.0
        clock.sleep(seconds * number)
        return seconds

    conditions = Conditions((), lambda: waited_s, Patience(CONFIG.vain_waits))
    timing = quiet_times(run, Repeats(3, 10, 1, math.inf), conditions, CONFIG)
    assert whole == 2
    assert timing == Timing((1e-4,) * 3, disturbed=False, reference_s=timing.reference_s)


def test_without_any_quiet_run_a_timing_is_disturbed_and_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Runs that are longer than a slice: each meets the busy loop."""
    monkeypatch.setattr("test_quiet_times.RUN_S", 2.2 * SLICE_S)
    system = System(monkeypatch)
    began_s = system.clock.now_s
    timing = system.timing(run_s=2.2 * SLICE_S)
    assert timing.disturbed
    assert 2.2 * SLICE_S <= timing.latency_s <= 2 * 2.2 * SLICE_S
    assert system.clock.now_s - began_s < CONFIG.others_s + 1.0
    for _ in range(CONFIG.vain_waits):
        system.timing(run_s=2.2 * SLICE_S)
    began_s = system.clock.now_s
    assert system.timing(run_s=2.2 * SLICE_S).disturbed
    assert system.clock.now_s - began_s < 0.2, "nobody waits for work that does not end"
    system.is_busy = False
    assert not system.timing(run_s=2.2 * SLICE_S).disturbed
    assert system.patience.is_left


def test_long_runs_wait_for_the_end_of_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy loop in turns of a second."""
    run_s = 1.5 * SLICE_S
    monkeypatch.setattr("test_quiet_times.RUN_S", run_s)
    system = System(monkeypatch)
    system.turn_s = 1.0
    found = []
    for _ in range(20):
        found.append(system.timing(run_s=run_s))
        system.clock.sleep(0.37)
    assert not any(timing.disturbed for timing in found)
    latencies = [timing.latency_s for timing in found]
    assert (max(latencies) - min(latencies)) / statistics.median(latencies) <= 0.05


def test_a_slow_program_beside_other_work_is_not_repeated_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = System(monkeypatch)
    began_s = system.clock.now_s
    timing = system.timing(slow_s=RUN_S / 1.5)
    assert timing.disturbed
    assert timing.latency_s > RUN_S / 1.5
    assert system.clock.now_s - began_s < 4 * SLICE_S + 0.05
    assert system.patience.is_left


def test_a_slow_core_is_no_reason_for_short_repeats() -> None:
    """No thread waits: another machine on the same core. After the last try all repeats count."""
    tries = iter([1.0] * 8 + [2.0] * 100)
    sentinel = Sentinel(lambda: next(tries), 1.25)
    runs: list[int] = []

    def run(number: int) -> float:
        runs.append(number)
        return 3.0

    config = MeasureConfig(disturbed_repeats=2, disturbed_pause_s=0.0)
    timing = quiet_times(run, Repeats(2, 10, 1, math.inf), Conditions((sentinel,)), config)
    assert timing == Timing((3.0,) * 3, disturbed=True, reference_s=2.0)
    assert runs == [10] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="the statistics are those of Linux")
def test_delays_are_those_of_this_process() -> None:
    delay = RunDelay()
    before = delay.seconds()
    assert 0.0 <= before <= delay.seconds() < 1e6
    delay.close()
    delay.close()
    assert delay.seconds() == 0.0


def test_a_system_without_statistics_has_no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise FileNotFoundError

    monkeypatch.setattr(os, "open", refuse)
    assert RunDelay().seconds() == 0.0


def test_a_watch_asks_for_delays() -> None:
    sentinel = Sentinel(lambda: 1.0, 1.25)
    conditions = Watch(sentinel, CONFIG).over(1e-3)
    assert conditions.delay() >= 0.0
    assert conditions.reference_s == 1.0
