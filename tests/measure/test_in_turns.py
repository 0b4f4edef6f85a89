"""Programs compared in turns: each with two workers, half of the rounds with the one."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, cast

import pytest
from test_local_device import CONFIG, make_task, open_device, sketches

from ansor.measure.local import comparison
from ansor.measure.local.comparison import time_in_turns
from ansor.measure.local.worker_pool import Pool
from ansor.measure.local.worker_process import WorkerProcess
from ansor.measure.protocol import Define
from ansor.program.program import Program

TASK = cast(Define, None)
PROGRAMS = sketches("a", "b", "c")


class Workers:
    """A pool as far as comparisons ask it."""

    def __init__(self, count: int) -> None:
        self.workers = [object()] * count


class Halves:
    """What each half of the rounds finds, and what it was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *found: dict[int, float]) -> None:
        self.asked: list[tuple[list[int], int]] = []
        self._found = iter(found)
        monkeypatch.setattr(comparison, "_medians", self._next)

    def _next(
        self, pool: Any, task: Any, programs: Mapping[int, Program], rounds: int
    ) -> dict[int, float]:
        assert all(programs[i] is PROGRAMS[i] for i in programs)
        self.asked.append((list(programs), rounds))
        return next(self._found)


def compare(rounds: int, workers: int = 2, in_two_places: bool = True) -> list[float | None]:
    pool = cast(Pool, Workers(workers))
    return time_in_turns(pool, TASK, PROGRAMS, rounds, in_two_places)


def test_a_time_is_the_mean_of_both_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    halves = Halves(monkeypatch, {0: 1.0, 1: 2.0, 2: 8.0}, {0: 3.0, 1: 2.0, 2: 4.0})
    assert compare(5) == [2.0, 2.0, 6.0]
    assert halves.asked == [([0, 1, 2], 3), ([1, 0, 2], 2)], "neighbours swap places"


def test_what_fails_in_a_half_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    halves = Halves(monkeypatch, {0: 1.0, 2: 8.0}, {2: 4.0})
    assert compare(4) == [None, None, 6.0]
    assert halves.asked[1][0] == [0, 2], "what failed is not tried again"


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
