"""Counts of a database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from database_records import FAILED, make_task, program, took

import ansor
from ansor.database import Database, statistics
from ansor.database.record import here_and_now
from ansor.report.database_tables import statistics_text


def test_every_record_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with Database(path) as database:
        database.add_many(make_task(), [(program(1), took(1.0)), (program(2), FAILED)])
        database.add(make_task("k2", "gpu"), program(1), took(1.0))
        database.add(make_task("k2"), program(1), FAILED)
        database.add_check(make_task(), program(1), 1e-6)
        database.elect("k1", make_task(), program(1))
    raw = sqlite3.connect(path)
    raw.execute("UPDATE records SET seed = 7 WHERE id = 4")
    raw.commit()
    raw.close()
    with Database(path) as database:
        found = statistics(database)
    assert (found.records, found.unreadable, found.tasks) == (3, 1, 2)
    assert (found.checks, found.elections) == (1, 1)
    assert found.targets == {"cpu": 2, "gpu": 1}
    assert found.hosts == {here_and_now(None).host: 3}
    assert found.versions == {ansor.__version__: 3}
    assert found.failures == {"build": 1}
    assert found.size_bytes == path.stat().st_size
    text = statistics_text(found)
    assert "targets     cpu: 2; gpu: 1" in text
    assert "failures    build: 1" in text
    assert "unreadable  1" in text


def test_a_database_in_memory_has_no_size() -> None:
    with Database() as database:
        found = statistics(database)
    assert (found.records, found.size_bytes) == (0, None)
    assert "failures    none" in statistics_text(found)
