"""Database files: what a kill, another program or another version may have done to them.

What every database keeps to is in `laws/test_every_database.py`.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from database_records import make_task, program, start_writer, took

from ansor.config import DatabaseConfig
from ansor.database import Database, schema
from ansor.errors import DatabaseError


def test_checks_hold_for_this_machine_and_its_packages(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with Database(path) as database:
        database.add_check(make_task(), program(1), 2e-6)
    for column, value in (("host", "another"), ("versions", "{}")):
        copy = tmp_path / f"{column}.sqlite"
        copy.write_bytes(path.read_bytes())
        with sqlite3.connect(copy) as connection:
            connection.execute(f"UPDATE checks SET {column} = ?", (value,))
        with Database(copy) as database:
            assert database.checked(make_task(), program(1)) is None


def test_elections_of_another_version_or_machine_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    task = make_task()
    with Database(path) as database:
        database.elect(task.key, task, program(1))
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


def test_what_cannot_be_written_is_named_and_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_open", partial(schema._open, busy_timeout_s=0.05))
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


def test_processes_that_make_a_file_at_once_wait_for_each_other() -> None:
    """SQLite raises an error at once where two of them set its journal."""
    answers = [sqlite3.OperationalError("database is locked")] * 3
    asked: list[str] = []

    def execute(statement: str) -> None:
        asked.append(statement)
        if answers:
            raise answers.pop()

    connection: Any = SimpleNamespace(execute=execute)
    schema._write_ahead(connection)
    assert asked == ["PRAGMA journal_mode = WAL"] * 4


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


def damage(path: Path, statement: str) -> None:
    """Changes values of a file, whose structure stays whole."""
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA foreign_keys = OFF")
    raw.execute(statement)
    raw.commit()
    raw.close()


@pytest.mark.parametrize(
    "values",
    [
        "latency_s = 0.5",
        "latency_s = 0.5, latencies_s = '[0.5]'",
        "latency_s = 'fast'",
        "latency_s = -1, latencies_s = '[-1]', checksum = NULL",
        "latency_s = 9e999, latencies_s = '[Infinity]', checksum = NULL",
        "latencies_s = '1', checksum = NULL",
        "latencies_s = '[\"1\"]', checksum = NULL",
        "program = replace(program, '[1,2,3]', '[2,2,3]')",
        "program = replace(program, '[1,2,3]', '[1,2,99999999999]'), checksum = NULL",
        "program = replace(program, '[1,2,3]', '[1,2,true]'), checksum = NULL",
        "program = replace(program, 'SSRSRS\"', 'SSRSRS\",\"more\":1'), checksum = NULL",
        'program = replace(program, \'"stage":"C"\', \'"stage":1\'), checksum = NULL',
        "program = CAST(x'ff00fe' AS TEXT), checksum = NULL",
        "program = x'00', checksum = NULL",
        "message = x'ff'",
        "message = CAST(x'ff' AS TEXT), checksum = NULL",
        "error = 'build', checksum = NULL",
        "error = 'sorcery', checksum = NULL",
        "build_s = -1, checksum = NULL",
        "time_s = 1e300, checksum = NULL",
        "versions = '[]', checksum = NULL",
        "versions = '{\"tvm\": 3}', checksum = NULL",
        "seed = 0.5, checksum = NULL",
        "seed = 4",
        "checksum = ''",
        "checksum = 7",
    ],
)
def test_a_damaged_row_is_left_out_and_counted(tmp_path: Path, values: str) -> None:
    path = tmp_path / "r.sqlite"
    with Database(path) as database:
        for number, seconds in ((1, 1.0), (1, 1.5), (2, 2.0)):
            database.add(make_task(), program(number), took(seconds), seed=3)
        _, *whole = database.records("k1", "cpu")
    damage(path, f"UPDATE records SET {values} WHERE id = 1")
    with Database(path) as database:
        assert database.records("k1", "cpu") == whole
        assert database.unreadable == 1
        assert [r.latency_s for r in database.best("k1", "cpu", 5)] == [1.5, 2.0]
        assert [r.latency_s for r in database.winners("cpu", besides="x")] == [1.5]


@pytest.mark.parametrize("table", ["checks", "elections"])
def test_a_damaged_check_or_election_does_not_count(tmp_path: Path, table: str) -> None:
    path = tmp_path / "r.sqlite"
    task = make_task()
    with Database(path) as database:
        database.elect(task.key, task, program(1))
        database.add_check(task, program(1), 0.5)
    column = {"checks": "difference = 1e-9", "elections": "time_s = 9e9"}[table]
    damage(path, f"UPDATE {table} SET {column}")
    with Database(path) as database:
        known = database.checked(task, program(1)), database.elected(task.key, task.target)
        assert known[table == "elections"] is None
        assert known[table == "checks"] is not None
        assert database.unreadable == 1


def test_a_damaged_task_is_left_out_until_it_is_tuned_again(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with Database(path) as database:
        database.add(make_task(), program(1), took(1.0))
        before = database.tasks()
    damage(path, "UPDATE tasks SET definition = 'another'")
    with Database(path) as database:
        assert database.tasks() == []
        assert database.unreadable == 1
        database.add(make_task(), program(2), took(1.0))
        assert database.tasks() == before
        assert database.count() == 2


def damaged_page(path: Path) -> None:
    """A file whose last page is overwritten."""
    with Database(path) as database:
        database.add_many(make_task(), [(program(i), took(1.0)) for i in range(200)])
    data = bytearray(path.read_bytes())
    data[-4096:] = b"\xff" * 4096
    path.write_bytes(data)


def test_a_damaged_page_is_noticed_when_the_file_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    damaged_page(path)
    refused(path, r"r\.sqlite.*damaged.*left as it is")


def test_a_damaged_page_of_a_large_file_is_noticed_when_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "DATABASE", DatabaseConfig(checked_bytes=0))
    path = tmp_path / "r.sqlite"
    damaged_page(path)
    with (
        Database(path) as database,
        pytest.raises(DatabaseError, match=r"r\.sqlite.*damaged.*left as it is"),
    ):
        database.all_records("cpu")


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_a_truncated_file_is_refused(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "r.sqlite"
    with Database(path) as database:
        database.add_many(make_task(), [(program(i), took(1.0)) for i in range(200)])
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    refused(path, "damaged")
