"""The record database: what goes in comes out, whatever happens to the process or the file."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.database import Database, schema
from ansor.errors import DatabaseError
from ansor.measure.result import ErrorKind, Measurement
from ansor.program.program import Program
from ansor.program.steps import Inline, MultiLevelTile

STEPS = (MultiLevelTile("C", "SSRSRS", ("i", "j")), Inline("pad"))
FAILED = Measurement(error=ErrorKind.BUILD, message="no")


def make_task(key: str = "k1", target: str = "cpu") -> Any:
    return SimpleNamespace(
        key=key, name=f"task {key}", target=target, dag=SimpleNamespace(text=f"text of {key}")
    )


def program(i: int) -> Program:
    return Program("tiled", STEPS, {"i": (i, 2, 3), "j": (4,)})


def took(seconds: float) -> Measurement:
    return Measurement((seconds,), build_s=0.1, run_s=0.2)


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    measurement = Measurement((3e-3, 1e-3, 2e-3), build_s=0.5, run_s=0.25)
    with Database(tmp_path / "r.sqlite") as database:
        database.add(make_task(), program(1), measurement, seed=7)
        database.add(make_task(), program(2), FAILED)
    with Database(tmp_path / "r.sqlite") as database:
        first, second = database.records("k1", "cpu")
        (entry,) = database.tasks()
    assert (first.program, first.measurement) == (program(1), measurement)
    assert (second.program, second.measurement) == (program(2), FAILED)
    assert (first.origin.seed, second.origin.seed) == (7, None)
    assert first.latency_s == 2e-3
    assert abs(first.origin.time_s - time.time()) < 60
    assert first.origin.host
    assert "apache-tvm" in first.origin.versions
    assert (entry.key, entry.name, entry.definition) == ("k1", "task k1", "text of k1")


def test_checks_hold_for_this_machine_and_its_packages(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with Database(path) as database:
        assert database.checked(make_task(), program(1)) is None
        database.add_check(make_task(), program(1), 1e-6)
        database.add_check(make_task(), program(1), 2e-6)
    with Database(path) as database:
        assert database.checked(make_task(), program(1)) == 2e-6
        others = [(make_task("k2"), 1), (make_task(target="gpu"), 1), (make_task(), 2)]
        assert [database.checked(task, program(i)) for task, i in others] == [None] * 3
    for column, value in (("host", "another"), ("versions", "{}")):
        copy = tmp_path / f"{column}.sqlite"
        copy.write_bytes(path.read_bytes())
        with sqlite3.connect(copy) as connection:
            connection.execute(f"UPDATE checks SET {column} = ?", (value,))
        with Database(copy) as database:
            assert database.checked(make_task(), program(1)) is None


def test_the_last_election_of_a_function_counts_on_this_machine(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    task, variant = make_task(), make_task("k2")
    with Database(path) as database:
        assert database.elected(task.key, task.target) is None
        database.elect(task.key, task, program(1))
        database.elect(task.key, variant, program(2))
    with Database(path) as database:
        last = database.elected(task.key, task.target)
        assert last is not None
        assert (last.task_key, last.program) == (variant.key, program(2))
        assert abs(last.time_s - time.time()) < 60
        assert database.elected(variant.key, task.target) is None
        assert database.elected(task.key, "gpu") is None
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE elections SET program = 'of another version'")
    with Database(path) as database:
        assert database.elected(task.key, task.target) is None
        assert database.unreadable == 1
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE elections SET host = 'another'")
    with Database(path) as database:
        assert database.elected(task.key, task.target) is None
        assert database.unreadable == 0


times = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=4).map(tuple)
measurements = st.one_of(
    st.builds(Measurement, times, build_s=st.floats(0, 1e3), run_s=st.floats(0, 1e3)),
    st.builds(Measurement, error=st.sampled_from(ErrorKind), message=st.text()),
)
programs = st.builds(
    Program,
    st.text(),
    st.just(STEPS),
    st.dictionaries(st.text(), st.lists(st.integers(), max_size=5).map(tuple)),
)


@given(st.lists(st.tuples(programs, measurements), max_size=4), st.none() | st.integers(0, 2**31))
def test_any_record_round_trips(pairs: list[tuple[Program, Measurement]], seed: int | None) -> None:
    with Database() as database:
        database.add_many(make_task(), pairs, seed)
        found = database.records("k1", "cpu")
        assert [(r.program, r.measurement) for r in found] == pairs
        assert all(r.origin.seed == seed for r in found)


def test_best_gives_each_program_once_fastest_first() -> None:
    with Database() as database:
        pairs = [(1, 5.0), (2, 3.0), (1, 1.0), (3, 4.0), (2, 6.0)]
        database.add_many(make_task(), [(program(i), took(s)) for i, s in pairs])
        database.add(make_task(), program(4), FAILED)
        found = [(r.program, r.latency_s) for r in database.best("k1", "cpu", n=9)]
        assert found == [(program(1), 1.0), (program(2), 3.0), (program(3), 4.0)]
        assert [r.program for r in database.best("k1", "cpu")] == [program(1)]
        assert database.best("nothing", "cpu") == []


def test_a_program_found_wrong_is_never_best() -> None:
    with Database() as database:
        database.add(make_task(), program(1), took(1.0))
        database.add(make_task(), program(2), took(2.0))
        database.add(make_task(), program(1), Measurement(error=ErrorKind.WRONG))
        assert [r.program for r in database.best("k1", "cpu", 5)] == [program(2)]


def test_winners_of_the_other_tasks_newest_first() -> None:
    with Database() as database:
        database.add(make_task("a"), program(1), took(2.0))
        database.add(make_task("b"), program(3), took(1.0))
        database.add(make_task("b"), program(4), took(3.0))
        database.add(make_task("a"), program(2), took(1.0))
        database.add(make_task("c"), program(5), FAILED)
        database.add(make_task("d", "gpu"), program(6), took(1.0))
        database.add(make_task("e"), program(7), took(1.0))
        database.add(make_task("e"), program(7), Measurement(error=ErrorKind.WRONG))
        assert [r.program for r in database.winners("cpu", besides="x")] == [program(2), program(3)]
        assert [r.program for r in database.winners("cpu", besides="a")] == [program(3)]
        assert database.winners("tpu", besides="x") == []


def test_another_target_is_never_returned_but_can_be_seen() -> None:
    with Database() as database:
        database.add(make_task(target="gpu"), program(1), took(1.0))
        assert database.best("k1", "cpu") == []
        assert database.records("k1", "cpu") == []
        assert database.all_records("cpu") == []
        assert database.targets("k1") == ["gpu"]
        assert database.targets() == ["gpu"]
        assert database.targets("k2") == []
        assert len(database.all_records("gpu")) == 1


def test_counts() -> None:
    with Database() as database:
        for key, target in [("a", "cpu"), ("a", "gpu"), ("b", "cpu")]:
            database.add(make_task(key, target), program(1), took(1.0))
        assert database.count() == 3
        assert database.count("a") == 2
        assert database.count(target="cpu") == 2
        assert database.count("b", "gpu") == 0


def test_a_batch_is_all_or_nothing() -> None:
    with Database() as database:
        bad: Any = object()
        with pytest.raises(AttributeError):
            database.add_many(make_task(), [(program(1), took(1.0)), (bad, took(1.0))])
        assert database.count() == 0
        database.add(make_task(), program(1), took(1.0))
        assert database.count() == 1


def test_a_record_of_another_version_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with Database(path) as database:
        database.add(make_task(), program(1), took(1.0))
        database.add(make_task(), program(2), took(2.0))
        raw = sqlite3.connect(path)
        raw.execute("UPDATE records SET program = '{\"steps\": 1}' WHERE id = 1")
        raw.commit()
        raw.close()
        assert [r.program for r in database.best("k1", "cpu", 2)] == [program(2)]
        assert database.unreadable == 1


WRITER = """
import sys
sys.path[:0] = [{tests!r}]
import test_database as t
database = t.Database({path!r})
for i in range(10**6):
    database.add_many(t.make_task(), [(t.program(i), t.took(1.0)), (t.program(i), t.FAILED)])
    print(i, flush=True)
"""


def start_writer(path: Path) -> subprocess.Popen[str]:
    script = WRITER.format(tests=str(Path(__file__).parent), path=str(path))
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def test_a_killed_writer_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    for before in range(2):
        writer = start_writer(path)
        assert writer.stdout is not None
        for _ in range(20):
            last = writer.stdout.readline()
        os.kill(writer.pid, signal.SIGKILL)
        last = [last, *writer.stdout.read().splitlines()][-1]
        writer.stdout.close()
        writer.wait()
        with Database(path) as database:
            found = [r.program.values["i"][0] for r in database.records("k1", "cpu")]
        mine = found[-2 * (int(last) + 1) :] if before else found
        assert len(mine) % 2 == 0
        assert len(mine) >= 2 * (int(last) + 1)


def test_several_processes_write(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    writers = [start_writer(path) for _ in range(3)]
    with Database(path) as database:
        for i in range(20):
            database.add(make_task("mine"), program(i), took(1.0))
        for writer in writers:
            assert writer.stdout is not None
            while int(writer.stdout.readline()) < 20:
                pass
        for writer in writers:
            writer.kill()
            writer.communicate()
        assert database.count("mine") == 20
        assert database.count("k1") >= 3 * 2 * 21


def test_what_cannot_be_written_is_named_and_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_BUSY_TIMEOUT_S", 0.05)
    path = tmp_path / "r.sqlite"
    with Database(path) as database:
        database.add(make_task(), program(1), took(1.0))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseError, match=r"database=.*r\.sqlite.*locked"):
            database.add(make_task(), program(2), took(2.0))
        other.execute("ROLLBACK")
        other.close()
        database.add(make_task(), program(3), took(3.0))
        assert [r.program for r in database.records("k1", "cpu")] == [program(1), program(3)]


@pytest.mark.parametrize("statement", ["INSERT INTO no_such_table VALUES (1)", "ROLLBACK"])
def test_an_error_inside_a_transaction_leaves_none_open(statement: str) -> None:
    """SQLite ends a transaction by itself where a disk is full."""
    connection = schema.connect(None)

    def write() -> None:
        with schema.transaction(connection):
            connection.execute("INSERT INTO tasks VALUES ('k', 'n', 'd')")
            connection.execute(statement)

    with pytest.raises(DatabaseError):
        write()
    assert not connection.in_transaction
    assert connection.execute("SELECT COUNT(*) FROM tasks").fetchone() == (0,)


def refused(path: Path, reason: str) -> None:
    """The path is refused, for this reason, and left as it is."""
    before = path.read_bytes() if path.is_file() else None
    neighbours = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    with pytest.raises(DatabaseError, match=reason):
        Database(path)
    if before is not None:
        assert path.read_bytes() == before
        assert sorted(path.parent.iterdir()) == neighbours


def test_a_file_that_is_not_sqlite_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n" * 100)
    refused(path, "not an SQLite file")


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("table", ["songs (a)", "meta (a)", "meta (name, value)"])
def test_a_database_of_another_program_is_refused(tmp_path: Path, table: str, mode: str) -> None:
    path = tmp_path / "other.sqlite"
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA journal_mode = {mode}")
    raw.execute(f"CREATE TABLE {table}")
    raw.close()
    refused(path, "of another program")


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    Database(path).close()
    raw = sqlite3.connect(path)
    raw.execute("UPDATE meta SET value = '99' WHERE name = 'format_version'")
    raw.commit()
    raw.close()
    refused(path, "newer")


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / "no" / "such" / "folder.sqlite", "give a file in a folder")
    refused(tmp_path, "give a file in a folder")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everything")
def test_a_read_only_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    Database(path).close()
    path.chmod(0o400)
    refused(path, "cannot be written")


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    path.touch()
    with Database(path) as database:
        assert database.count() == 0
