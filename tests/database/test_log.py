"""Logs: lines that are written while a search runs, and files that are read as records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from database_records import FAILED, make_task, program, took

from ansor.database import Database, RecordLog, export_jsonl, opened_records
from ansor.database.log import logged
from ansor.errors import ArgumentError, DatabaseError

AUTOTVM = '{"input": ["llvm", "dense", []], "config": {}, "result": [[0.1], 0, 1.0, 2.0]}\n'


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_each_measurement_is_a_line_as_soon_as_it_is_recorded(tmp_path: Path) -> None:
    log, text = tmp_path / "log.jsonl", tmp_path / "text.jsonl"
    with Database() as database:
        with logged(database, log):
            database.add(make_task(), program(1), took(1.5))
            assert len(lines(log)) == 1
            database.add_many(make_task(), [(program(2), FAILED), (program(3), took(2.0))], seed=3)
            assert len(lines(log)) == 3
        database.add(make_task(), program(4), took(1.0))
        assert len(lines(log)) == 3, "the log has ended"
        export_jsonl(database, text)
    assert lines(log) == lines(text)[:3]
    assert json.loads(lines(log)[1])["record"]["error"] == "build"


def test_without_a_path_nothing_is_written() -> None:
    with Database() as database, logged(database, None):
        database.add(make_task(), program(1), took(1.5))


def test_an_existing_log_goes_on_even_after_half_a_line(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    for number in range(2):
        with Database() as database, logged(database, log):
            database.add(make_task(), program(number), took(1.5))
        with log.open("a") as stream:
            stream.write('{"format": 1, "task"')
    assert len(lines(log)) == 4
    with opened_records("log", log) as records:
        assert [r.program for r in records.all_records("cpu")] == [program(0), program(1)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_named_and_the_log_is_closed() -> None:
    with (
        Database() as database,
        pytest.raises(DatabaseError, match=r"No space left.*; give a file"),
        logged(database, "/dev/full"),
    ):
        database.add(make_task(), program(1), took(1.5))


def test_a_log_is_read_as_records_and_so_is_a_database(tmp_path: Path) -> None:
    log, file = tmp_path / "log.jsonl", tmp_path / "r.sqlite"
    with Database(file) as database, logged(database, log):
        database.add(make_task(), program(1), took(1.5))
        known = database.all_records("cpu")
        with opened_records("log", database) as same:
            assert same is database
        assert database.count() == 1, "the caller's database stays open"
    for path in (log, str(file)):
        with opened_records("log", path) as records:
            assert records.all_records("cpu") == known


@pytest.mark.parametrize("path", ["no/folder.jsonl", "folder", "r.sqlite"])
def test_a_log_that_cannot_be_written_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "folder").mkdir()
    Database(tmp_path / "r.sqlite").close()
    before = (tmp_path / "r.sqlite").read_bytes()
    with pytest.raises(DatabaseError, match=r"log='.*give (a|another) file"):
        RecordLog(tmp_path / path)
    assert (tmp_path / "r.sqlite").read_bytes() == before


def test_files_without_records_are_refused(tmp_path: Path) -> None:
    foreign = tmp_path / "autotvm.log"
    foreign.write_text(AUTOTVM * 2)
    with pytest.raises(DatabaseError, match="none of its 2 lines"), opened_records("log", foreign):
        pass
    missing = tmp_path / "missing.jsonl"
    with pytest.raises(ArgumentError, match="no such file"), opened_records("log", missing):
        pass
    with pytest.raises(ArgumentError, match="transfer=7"), opened_records("transfer", 7):
        pass


def test_an_empty_log_has_no_records(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    RecordLog(log).close()
    with opened_records("log", log) as records:
        assert records.count() == 0
