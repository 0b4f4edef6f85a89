"""A database of an earlier format is brought to this one, with all that it holds."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from database_records import make_task, program, took

from ansor.database import Database, formats, schema
from ansor.database.formats import FORMAT_VERSION, format_of
from ansor.database.journal import Journal
from ansor.errors import DatabaseError
from ansor.program.codec import encode

# As a package of format 1 wrote it. Its first versions had no table of elections.
FORMAT_1 = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO meta VALUES ('package', 'ansor'), ('format_version', '1');
CREATE TABLE tasks (key TEXT PRIMARY KEY, name TEXT NOT NULL, definition TEXT NOT NULL);
CREATE TABLE records (
    id INTEGER PRIMARY KEY, task_key TEXT NOT NULL REFERENCES tasks (key), target TEXT NOT NULL,
    sketch TEXT NOT NULL, program TEXT NOT NULL, latency_s REAL, latencies_s TEXT NOT NULL,
    build_s REAL NOT NULL, run_s REAL NOT NULL, error TEXT, message TEXT NOT NULL,
    host TEXT NOT NULL, versions TEXT NOT NULL, seed INTEGER, time_s REAL NOT NULL
);
CREATE TABLE checks (
    task_key TEXT NOT NULL REFERENCES tasks (key), target TEXT NOT NULL, program TEXT NOT NULL,
    host TEXT NOT NULL, versions TEXT NOT NULL, difference REAL NOT NULL,
    PRIMARY KEY (task_key, target, program, host, versions)
);
CREATE INDEX by_latency ON records (target, task_key, latency_s);
INSERT INTO tasks VALUES ('k1', 'task k1', 'text of k1');
"""
_INSERT = (
    "INSERT INTO records VALUES (NULL, 'k1', 'cpu', 'tiled', ?, ?, '[0.5]', 0.1, 0.2, NULL, '', "
    "'host', '{}', 3, 1.0)"
)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file of format 1 with two records."""
    path = tmp_path / "old.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(FORMAT_1)
    connection.executemany(_INSERT, [(encode(program(i)), 0.5) for i in range(2)])
    connection.commit()
    connection.close()
    return path


def tables(database: Database) -> dict[str, list[tuple[object, ...]]]:
    """The columns of each table, and those of each index."""
    names = database.connection.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()
    found = {}
    for (name,) in names:
        for pragma in ("table_info", "index_info"):
            found[f"{pragma} {name}"] = database.connection.execute(
                f"PRAGMA {pragma}('{name}')"
            ).fetchall()
    return found


def test_the_records_of_format_1_are_kept(old: Path) -> None:
    with Database(old) as database:
        assert format_of(database.connection) == FORMAT_VERSION == 4
        assert [r.program for r in database.records("k1", "cpu")] == [program(0), program(1)]
        assert {(r.latency_s, r.origin.seed) for r in database.all_records("cpu")} == {(0.5, 3)}
        assert [entry.definition for entry in database.tasks()] == ["text of k1"]
        assert database.unreadable == 0


def test_it_has_the_tables_of_a_new_file(old: Path) -> None:
    with Database(old) as migrated, Database() as new:
        assert tables(migrated) == tables(new)


def test_it_is_used_as_any_other(old: Path) -> None:
    with Database(old) as database:
        journal = Journal(database)
        journal.add(make_task(), program(2), took(0.25), seed=0)
        database.elect("k1", make_task(), program(2))
    with Database(old) as database:
        assert [r.program for r in database.best("k1", "cpu")] == [program(2)]
        assert database.elected("k1", "cpu") is not None


def test_all_of_it_or_nothing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = old.read_bytes()
    broken = (*formats.FORMATS, "CREATE TABLE later (a); SELECT no_such_function()")
    with monkeypatch.context() as patched:
        patched.setattr(formats, "FORMATS", broken)
        patched.setattr(formats, "FORMAT_VERSION", 5)
        with pytest.raises(DatabaseError, match="no_such_function"):
            Database(old)
    connection = sqlite3.connect(f"file:{old}?mode=ro", uri=True)
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert format_of(connection) == 1
    assert not names & {"runs", "readings", "later"}
    connection.close()
    assert len(old.read_bytes()) == len(before)
    with Database(old) as database:
        assert database.count() == 2


def test_an_open_file_is_not_written_again(old: Path) -> None:
    with Database(old) as database:
        changes = database.connection.total_changes
        other = schema.connect(old)
        other.close()
        assert database.count() == 2
        assert database.connection.total_changes == changes
