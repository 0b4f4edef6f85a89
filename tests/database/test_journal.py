"""The visible records and the time of a run, before and after an interruption."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from database_records import make_task, program, took
from hypothesis import given
from hypothesis import strategies as st

from ansor.database import Database, runs
from ansor.database.journal import Journal, open_journal
from ansor.database.run_clock import RunClock
from ansor.database.runs import RunRequest

REQUEST = RunRequest("wanted")
TASK = make_task()


def ticking(start: float = 0.0) -> Callable[[], float]:
    """A clock that moves by a second with each look."""
    ticks = count()
    return lambda: start + next(ticks)


@pytest.fixture
def database() -> Iterator[Database]:
    with Database() as opened:
        yield opened


def opened(database: Database, identity: str = "wanted", resume: bool = True) -> Journal:
    return open_journal(database, ticking(100.0), RunRequest(identity), resume)


def killed(database: Database, programs: int = 3) -> None:
    """A run that measured some programs before its process was gone."""
    journal = Journal(database, ticking(), REQUEST)
    for i in range(programs):
        journal.clock()
        journal.add(TASK, program(i), took(1.0 + i), seed=0)
    with_owner(database, "999999999 1.0")


def with_owner(database: Database, owner: str) -> None:
    database.connection.execute("UPDATE runs SET owner = ?", (owner,))


# --- the clock ------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1e6), max_size=8), st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_clock_repeats_its_readings_and_goes_on(
    readings: list[float], spent_s: float, now_s: float
) -> None:
    source = ticking(now_s)
    clock = RunClock(source, sorted(readings), spent_s)
    assert [clock() for _ in readings] == sorted(readings)
    assert clock.unwritten == {}
    assert [clock.now(), clock(), clock()] == [spent_s] * 3, "nothing is measured"
    clock.go_on()
    later = [clock() for _ in range(3)]
    assert later == pytest.approx([spent_s + 1, spent_s + 2, spent_s + 3], abs=1e-6)
    assert list(clock.unwritten) == list(range(len(readings), len(readings) + 5))


def test_a_clock_of_a_run_that_begins_is_its_source() -> None:
    clock = RunClock(ticking(5.0))
    clock.go_on()
    assert [clock(), clock.now(), clock()] == [5.0, 6.0, 7.0]
    assert clock.unwritten == {0: 5.0, 1: 7.0}


# --- what is resumed ------------------------------------------------------------------------


def test_a_killed_run_is_taken_up(database: Database) -> None:
    killed(database)
    journal = opened(database)
    assert journal.interrupted is not None
    assert (journal.recovered, journal.interrupted.spent_s) == (3, 5.0)
    assert [journal.clock() for _ in range(4)] == [0.0, 2.0, 4.0, 5.0]
    (row,) = runs.all_runs(database.connection)
    assert row.is_running
    assert not row.finished


def test_a_run_that_another_process_works_on_is_left_alone(database: Database) -> None:
    killed(database)
    with_owner(database, runs.this_process())
    assert opened(database).interrupted is None


@pytest.mark.parametrize("identity", ["other", ""])
def test_a_run_with_other_arguments_is_left_alone(database: Database, identity: str) -> None:
    killed(database)
    assert opened(database, identity).interrupted is None


def test_a_run_may_begin_afresh(database: Database) -> None:
    killed(database)
    journal = opened(database, resume=False)
    assert journal.interrupted is None
    assert len(journal.records("k1", "cpu")) == 3, "records of earlier runs"


def test_a_finished_run_is_not_resumed(database: Database) -> None:
    killed(database)
    journal = opened(database)
    journal.finish()
    journal.release()
    assert opened(database).interrupted is None
    assert runs.readings_of(database.connection, 1) == []


def test_of_two_runs_the_newer_counts(database: Database) -> None:
    killed(database)
    newer = opened(database, resume=False)
    newer.add(TASK, program(9), took(1.0), seed=0)
    newer.finish()
    newer.release()
    assert opened(database).interrupted is None


def test_a_released_run_goes_on_in_the_same_process(database: Database) -> None:
    journal = opened(database)
    journal.add(TASK, program(0), took(1.0), seed=0)
    journal.release()
    assert opened(database).recovered == 1


def test_a_run_without_a_measurement_leaves_no_row(database: Database) -> None:
    journal = opened(database)
    journal.clock()
    journal.finish()
    journal.release()
    assert runs.all_runs(database.connection) == []


# --- what it knows --------------------------------------------------------------------------


def known(journal: Journal) -> list[int]:
    return [r.program.values["i"][0] for r in journal.records("k1", "cpu")]


def test_records_of_other_runs_that_came_later_are_not_known(database: Database) -> None:
    database.add(TASK, program(7), took(1.0))
    journal = opened(database)
    database.add(TASK, program(8), took(1.0))
    assert known(journal) == [7]
    journal.add(TASK, program(0), took(1.0), seed=0)
    database.add(TASK, program(9), took(1.0))
    assert known(journal) == [7, 0]
    assert [r.program for r in journal.winners("cpu", besides="x")] == [program(7)]


def test_a_repetition_knows_the_rounds_that_it_has_repeated(database: Database) -> None:
    killed(database)
    database.add(TASK, program(9), took(1.0))
    journal = opened(database)
    assert known(journal) == []
    found, last = journal.recall(TASK, [program(1), program(0)])
    assert ({i: result.latency_s for i, result in found.items()}, last) == ({0: 2.0, 1: 1.0}, 2)
    assert known(journal) == []
    journal.show(last)
    assert known(journal) == [0, 1]
    assert journal.is_repeating
    assert list(journal.recall(TASK, [program(2), program(5)])[0]) == [0]
    assert not journal.is_repeating
    journal.go_on()
    journal.add(TASK, program(5), took(1.0), seed=0)
    assert known(journal) == [0, 1, 2, 5]


def test_what_is_not_repeated_is_given_up(database: Database) -> None:
    killed(database)
    journal = opened(database)
    journal.recall(TASK, [program(1), program(5)])
    assert [r.program for r in journal.give_up(["k1"])] == [program(0), program(2)]
    assert not journal.is_repeating
    journal.go_on()
    assert known(journal) == [0, 1, 2]


# --- processes ------------------------------------------------------------------------------


def test_a_process_that_has_ended_is_not_alive() -> None:
    script = (
        "from ansor.database.runs import this_process; print(this_process(), flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        owner = process.stdout.readline()
        assert runs.is_alive(owner)
        assert not runs.is_alive(f"{owner.split()[0]} 1.0"), "another process had the number"
        process.kill()
        process.wait()
        assert not runs.is_alive(owner)
    assert runs.is_alive(runs.this_process())


def test_a_file_is_shared_with_the_process_that_resumes(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with Database(path) as database:
        killed(database)
    with Database(path) as first, Database(path) as second:
        assert opened(first).recovered == 3
        assert opened(second).interrupted is None, "the first works on it"
