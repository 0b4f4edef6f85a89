"""A killed run continues exactly like an uninterrupted one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_world import CONFIG, TARGET, Trace, World, make_tasks

from ansor.database.database import Database
from ansor.database.journal import open_journal
from ansor.database.runs import RunRequest, all_runs
from ansor.measure.result import ErrorKind
from ansor.program.program import Program
from ansor.run.identity import run_request
from ansor.run.search.budget import Budget
from ansor.run.search.task_limits import TaskLimits
from ansor.run.settings import Settings
from ansor.task import Task

REQUEST = RunRequest("wanted")


class KilledError(BaseException):
    """Stands for the end of the process: nothing in the search catches it."""


class Mortal:
    """A clock that moves by a second with each measurement of its world, until the world ends.

    Args:
        last: measurements before the end; None for no end.
    """

    def __init__(self, last: int | None = None) -> None:
        self.measured, self._last = 0, last

    def __call__(self) -> float:
        return 1000.0 + self.measured

    def fail(self, task: Task, program: Program) -> ErrorKind | None:
        """Fails one program in five."""
        if self.measured == self._last:
            raise KilledError
        self.measured += 1
        return ErrorKind.BUILD if sum(map(sum, program.values.values())) % 5 == 0 else None


def attempt(database: Database, budget: Budget, last: int | None = None, **options: Any) -> World:
    """A run of the request, new or resumed, that ends after some measurements."""
    life = Mortal(last)
    journal = open_journal(database, life, REQUEST, resume=True)
    world = World(journal=journal, database=database, fail=life.fail, **options)
    try:
        world.tuner.run(budget)
    except KilledError:
        pass
    else:
        journal.finish()
    journal.release()
    return world


def ends(world: World) -> list[tuple[str, float | None, int]]:
    return [(s.name, s.best_s, s.trials) for s in world.tuner.statuses]


BUDGETS = {
    "trials": Budget(40),
    "seconds": Budget(seconds=30.0),
    "limits": Budget(per_task=TaskLimits(trials=12, early_stopping=10)),
}


@pytest.mark.parametrize(
    ("name", "kills"),
    [("trials", (1, 8, 9)), ("trials", (27,)), ("seconds", (1, 8, 9)), ("limits", (5, 14))],
)
def test_a_killed_run_measures_what_another_would(name: str, kills: tuple[int, ...]) -> None:
    budget = BUDGETS[name]
    with Database() as whole, Database() as broken:
        uninterrupted = attempt(whole, budget)
        trace: Trace = []
        for last in (*kills, None):
            world = attempt(broken, budget, last)
            trace += world.trace[:last]
        assert trace == uninterrupted.trace
        assert ends(world) == ends(uninterrupted)
        (finish,), (expected,) = world.events.finishes, uninterrupted.events.finishes
        assert (finish.reason, finish.trials) == (expected.reason, expected.trials)
        assert finish.elapsed_s == pytest.approx(expected.elapsed_s)
        rounds = [r.measured for r in world.events.rounds]
        assert rounds == [r.measured for r in uninterrupted.events.rounds]
        assert sum(r.recalled for r in world.events.rounds) == sum(kills)
        (run,) = all_runs(broken.connection)
        assert run.finished
        assert broken.count() == whole.count() == finish.trials


def test_records_from_before_the_run_are_the_same_again() -> None:
    """Records of other runs during a search do not change it."""
    with Database() as whole, Database() as broken:
        for database in (whole, broken):
            World("row_sum", database=database, seed=4).run(8)
        expected = attempt(whole, Budget(40)).trace
        first = attempt(broken, Budget(40), last=21)
        World(database=broken, seed=9).run(16)
        second = attempt(broken, Budget(40))
        assert first.trace[:21] + second.trace == expected


def test_two_searches_of_one_run_are_both_repeated() -> None:
    """The second one begins with the records of the first, as with `precision="auto"`."""

    def both(database: Database, last: int | None) -> Trace:
        life = Mortal(last)
        journal = open_journal(database, life, REQUEST, resume=True)
        trace: Trace = []
        for names in ((), ("matmul_relu", "row_sum")):
            world = World(*names, journal=journal, database=database, fail=life.fail)
            try:
                world.run(24)
            except KilledError:
                journal.release()
                return (trace + world.trace)[:last]
            trace += world.trace
        return trace

    with Database() as whole, Database() as broken:
        expected = both(whole, None)
        assert len(expected) == 48
        assert both(broken, 37) + both(broken, None) == expected


def test_a_search_that_proposes_something_else_spends_no_more_trials() -> None:
    """As after a change of the machine's parameters: what was measured is known and counts."""
    with Database() as database:
        first = attempt(database, Budget(40), last=20)
        second = attempt(database, Budget(40), seed=5)
        (finish,) = second.events.finishes
        assert not set(first.trace[:20]) & set(second.trace)
        assert 40 <= finish.trials <= 40 + CONFIG.evolution.batch
        assert database.count() == finish.trials
        assert sum(s.trials for s in finish.tasks) == finish.trials
        for status in finish.tasks:
            assert status.best_s == database.best(status.key, TARGET)[0].latency_s


def test_an_interrupt_keeps_the_batch_and_the_run_goes_on() -> None:
    with Database() as database:
        journal = open_journal(database, Mortal(), REQUEST, resume=True)
        first = World(journal=journal, database=database, interrupt_at=14)
        assert first.run(40).trials == database.count() == 13
        journal.release()
        journal = open_journal(database, Mortal(), REQUEST, resume=True)
        second = World(journal=journal, database=database)
        second.run(40)
        whole = World()
        whole.run(40)
        assert first.trace + second.trace == whole.trace


# --- which run a call asks for --------------------------------------------------------------


def request(tasks: list[Task] | None = None, **settings: Any) -> RunRequest:
    given = Settings.of(settings, networks=1)
    own = make_tasks() if tasks is None else tasks
    return run_request(given, TARGET, own, np.array([[task.weight for task in own]]))


def test_equal_calls_ask_for_the_same_run(tmp_path: Path) -> None:
    same = request(trials=8, database=tmp_path / "a", log="b", resume=False)
    assert same.identity == request(trials=8).identity


@pytest.mark.parametrize(
    "other",
    [{"trials": 9}, {"trials": 8, "seed": 1}, {"trials": 8, "policy": "random"}, {"minutes": 1}],
)
def test_other_calls_ask_for_another_run(other: dict[str, Any]) -> None:
    assert request(**other).identity != request(trials=8).identity


def test_other_tasks_ask_for_another_run() -> None:
    assert request(make_tasks("row_sum"), trials=8).identity != request(trials=8).identity
