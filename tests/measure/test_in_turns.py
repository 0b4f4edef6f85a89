"""Programs compared in turns: each with two workers, half of the rounds with the one."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, cast

import pytest
from test_local_device import CONFIG, make_task, open_device, sketches

from ansor.measure import turns
from ansor.measure.local import comparison
from ansor.measure.local.comparison import time_in_turns
from ansor.measure.local.worker_pool import Pool
from ansor.measure.local.worker_process import WorkerProcess
from ansor.measure.protocol import Define
from ansor.measure.result import InTurns, Timing
from ansor.program.program import Program

TASK = cast(Define, None)
PROGRAMS = sketches("a", "b", "c")


class Workers:
    """A pool as far as comparisons ask it."""

    def __init__(self, count: int) -> None:
        self.workers = [object()] * count


class Halves:
    """Results of each half of the rounds, and its requests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *found: dict[int, float]) -> None:
        self.asked: list[tuple[list[int], int]] = []
        self._found = iter(found)
        monkeypatch.setattr(comparison, "_rounds", self._next)

    def _next(
        self, pool: Any, task: Any, programs: Mapping[int, Program], rounds: int
    ) -> dict[int, list[float]]:
        assert all(programs[i] is PROGRAMS[i] for i in programs)
        self.asked.append((list(programs), rounds))
        return {i: [seconds] for i, seconds in next(self._found).items()}


def compare(rounds: int, workers: int = 2, in_two_places: bool = True) -> list[float | None]:
    pool = cast(Pool, Workers(workers))
    found = time_in_turns(pool, TASK, PROGRAMS, rounds, in_two_places)
    return [None if turns is None else turns.latency_s for turns in found]


def test_a_time_is_the_mean_of_both_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    halves = Halves(monkeypatch, {0: 1.0, 1: 2.0, 2: 8.0}, {0: 3.0, 1: 2.0, 2: 4.0})
    assert compare(5) == [2.0, 2.0, 6.0]
    assert halves.asked == [([0, 1, 2], 3), ([1, 0, 2], 2)], "neighbours swap places"


def test_what_fails_in_a_half_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    halves = Halves(monkeypatch, {0: 1.0, 2: 8.0}, {2: 4.0})
    assert compare(4) == [None, None, 6.0]
    assert halves.asked[1][0] == [0, 2], "what failed is not tried again"


def test_the_spread_is_that_of_all_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1 to 4 and 6 to 9 the quartiles are 2.75 and 7.25, and the mean of the medians is 5."""
    halves = iter([{0: [1.0, 2.0, 3.0, 4.0]}, {0: [9.0, 8.0, 7.0, 6.0]}])
    monkeypatch.setattr(comparison, "_rounds", lambda *_: next(halves))
    (found,) = time_in_turns(cast(Pool, Workers(2)), TASK, PROGRAMS[:1], 8, True)
    assert found == InTurns(5.0, (7.25 - 2.75) / 5.0)


def test_rounds_on_a_disturbed_machine_do_not_count() -> None:
    quiet = [Timing((1.0,)), Timing((1.1,))]
    busy = [Timing((3.0,), disturbed=True)]
    assert turns.counted([*quiet, *busy]) == [1.0, 1.1]
    assert turns.counted([*quiet[:1], *busy, *busy]) == [1.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("rounds", "workers", "in_two_places"), [(1, 2, True), (4, 1, True), (4, 2, False)]
)
def test_all_rounds_in_one_place(
    monkeypatch: pytest.MonkeyPatch, rounds: int, workers: int, in_two_places: bool
) -> None:
    halves = Halves(monkeypatch, {0: 1.0, 1: 2.0, 2: 3.0})
    assert compare(rounds, workers, in_two_places) == [1.0, 2.0, 3.0]
    assert [rounds for _, rounds in halves.asked] == [rounds]


def test_a_program_is_built_by_two_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    builders: dict[str, list[WorkerProcess]] = defaultdict(list)
    send = Pool.send_build

    def noted(pool: Pool, worker: WorkerProcess, task: Define, program: Program) -> int:
        builders[program.sketch].append(worker)
        return send(pool, worker, task, program)

    monkeypatch.setattr(Pool, "send_build", noted)
    two = dataclasses.replace(CONFIG, workers=2, build_timeout_s=20.0, run_timeout_s=20.0)
    with open_device(two) as device:
        device.start()
        device._pool.settle()
        times = device.compare(make_task(), sketches("fine", "slow"), 4)
    assert None not in times
    assert {name: len(set(each)) for name, each in builders.items()} == {"fine": 2, "slow": 2}
