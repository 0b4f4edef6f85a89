"""Times that no machine reaches never win, whatever device tells them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from definitions import HARDWARE
from fake_world import CONFIG, TARGET, World, latency_of, make_task, make_tasks
from formula_device import FormulaDevice

import ansor
from ansor.database.database import Database
from ansor.measure.call_plan import CallPlan, PlannedCall
from ansor.measure.device import OnResult, ignored
from ansor.measure.fake import FakeDevice
from ansor.measure.result import ErrorKind, Measurement
from ansor.program.program import Program
from ansor.run.search.budget import Budget
from ansor.run.search.tuner import Tuner
from ansor.run.winners.choose import choose_winners
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.task import Task
from ansor.workloads import build

NAME = "matmul_relu"
ALONE = CallPlan((PlannedCall(NAME, (0, 1, 2)),), (4, 4, 4))
IMPOSSIBLE = [0.0, -1.0, math.nan, math.inf, 1e-12]


class Broken(FakeDevice):
    """Every third program has a time that is none."""

    def __init__(self, bad: float) -> None:
        super().__init__(latency_of)
        self.bad = bad
        self.broken: list[Program] = []

    def measure(
        self,
        task: Task,
        programs: Sequence[Program],
        best_s: float | None,
        on_result: OnResult = ignored,
    ) -> list[Measurement]:
        found = super().measure(task, programs, best_s)
        self.broken += programs[::3]
        return [Measurement((self.bad,)) if i % 3 == 0 else m for i, m in enumerate(found)]

    def compare(self, task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        found = super().compare(task, programs, rounds)
        return [self.bad, *found[1:]]


@pytest.mark.parametrize("bad", IMPOSSIBLE)
def test_an_impossible_time_is_a_failed_trial(bad: float) -> None:
    world, device = World(NAME), Broken(bad)
    tuner = Tuner(
        make_tasks(NAME), HARDWARE, CPU_SEARCH, device, world.journal, CONFIG, 0, [world.events]
    )
    finish = tuner.run(Budget(24))
    (search,) = tuner.searches
    assert finish.trials == device.count == 24
    records = world.database.records(search.task.key, TARGET)
    failed = [r.program for r in records if r.measurement.error is ErrorKind.RUN]
    assert failed == device.broken
    assert sum(done.errors.get("run", 0) for done in world.events.rounds) == len(failed) == 9
    assert search.best_s is not None
    assert search.least_s < search.best_s < math.inf
    winner = choose_winners(
        tuner.functions([search.task]), ALONE, device, world.database, CONFIG.measure, 4
    )[NAME]
    assert winner.program not in device.broken
    assert winner.latency_s is not None
    assert winner.latency_s > search.least_s, "nor does it win a comparison with such a time"


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf])
def test_a_record_of_an_impossible_time_is_not_read(bad: float) -> None:
    task = make_task(NAME)
    with Database() as database:
        database.add(task, Program("a"), Measurement((bad,)))
        database.add(task, Program("b"), Measurement((1e-3,)))
        assert [r.program.sketch for r in database.records(task.key, TARGET)] == ["b"]
        assert database.unreadable == 1
        assert [r.program.sketch for r in database.best(task.key, TARGET, 9)] == ["b"]


def test_a_device_of_a_user_cannot_win_with_zero_seconds() -> None:
    class Liar(FormulaDevice):
        def measure(
            self,
            task: Task,
            programs: Sequence[Program],
            best_s: float | None,
            on_result: OnResult = ignored,
        ) -> list[Measurement]:
            found = super().measure(task, programs, best_s)
            return [Measurement((0.0,)), *found[1:]]

    definition = build("matmul", rows=32, columns=40, depth=36)
    tuned = ansor.auto_schedule(list(definition.tensors), trials=8, device=Liar())
    (result,) = tuned.tasks
    assert result.latency_s is not None
    assert result.latency_s >= 1e-3
