"""Records as JSON lines: out and in again, torn lines included."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from database_records import FAILED, make_task, program, took
from hypothesis import given
from hypothesis import strategies as st

from ansor.database import Database, ImportCount, export_jsonl, import_jsonl
from ansor.errors import DatabaseError


@pytest.fixture
def database() -> Iterator[Database]:
    with Database() as database:
        database.add_many(make_task(), [(program(1), took(1.5)), (program(2), FAILED)], seed=3)
        database.add(make_task("k2", "gpu"), program(3), took(0.5))
        yield database


def test_what_is_known_is_not_added_again(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    export_jsonl(database, path)
    path.write_text(path.read_text() * 2)
    assert import_jsonl(database, path) == ImportCount(added=0, known=6, bad=0)
    with Database() as other:
        assert import_jsonl(other, path) == ImportCount(added=3, known=3, bad=0)


def test_one_target_only(database: Database, tmp_path: Path) -> None:
    assert export_jsonl(database, tmp_path / "r.jsonl", target="gpu") == 1


def test_each_line_stands_on_its_own(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    export_jsonl(database, path)
    document = json.loads(path.read_text().splitlines()[0])
    assert document["task"]["definition"] == "text of k1"
    assert document["record"]["latencies_s"] == [1.5]
    assert document["record"]["program"]["sketch"] == "tiled"


def test_a_line_without_a_mark_is_undisturbed(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    export_jsonl(database, path)
    text = path.read_text()
    assert text.count(', "disturbed": 0') == 3
    path.write_text(text.replace(', "disturbed": 0', ""))
    with Database() as other:
        assert import_jsonl(other, path) == ImportCount(added=3, known=0, bad=0)
        assert other.records("k1", "cpu") == database.records("k1", "cpu")


def test_bad_lines_are_counted_and_skipped(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    export_jsonl(database, path)
    good, failed, torn = path.read_bytes().splitlines()
    newer = good.replace(b'"format": 2', b'"format": 3')
    swapped = good.replace(b'"task_key": "k1"', b'"task_key": "k9"')
    bad = [b"", newer, b"[]", b"null", b"\xff\xfe", swapped, b'{"format": "x"}', b"{}"]
    path.write_bytes(b"\n".join([*bad, good, failed, torn[: len(torn) // 2]]))
    with Database() as other:
        assert import_jsonl(other, path) == ImportCount(added=2, known=0, bad=8)
        assert other.records("k1", "cpu") == database.records("k1", "cpu")


def test_lines_without_checksums_are_read(database: Database, tmp_path: Path) -> None:
    """Versions before wrote format 1."""
    path = tmp_path / "r.jsonl"
    export_jsonl(database, path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for document in lines:
        document["format"] = 1
        del document["checksum"]
    path.write_text("\n".join(map(json.dumps, lines)))
    with Database() as other:
        assert import_jsonl(other, path) == ImportCount(added=3, known=0, bad=0)
        assert other.records("k1", "cpu") == database.records("k1", "cpu")


@given(st.integers(0, 10**6), st.integers(0, 255) | st.sampled_from(b'0123456789"{}[],: '))
def test_a_changed_byte_never_makes_another_record(place: int, byte: int) -> None:
    with TemporaryDirectory() as folder, Database() as database, Database() as other:
        path = Path(folder) / "r.jsonl"
        database.add_many(make_task(), [(program(1), took(1.5)), (program(2), FAILED)], seed=3)
        export_jsonl(database, path)
        text = bytearray(path.read_bytes())
        text[place % len(text)] = byte
        path.write_bytes(text)
        import_jsonl(other, path)
        written = database.records("k1", "cpu")
        assert all(record in written for record in other.records("k1", "cpu"))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"latency_s": 1.5, "latencies_s": [1.5]', '"latency_s": 1.4, "latencies_s": [1.4]'),
        ('"name": "task k1"', '"name": "task k2"'),
        ('"message": ""', '"message": "\\ud800"'),
        ('"i": [1, 2, 3]', '"i": [1, 2, 99999999999]'),
        ('"i": [1, 2, 3]', '"i": [1, 2, 3.0]'),
        ('"message": ""', '"message": ' + "[" * 100_000),
        ('"message": ""', '"message": null'),
        ('"latencies_s": [1.5]', '"latencies_s": ["a", "b"]'),
        ('"latencies_s": [1.5]', '"latencies_s": 1.5'),
        ('"versions": {', '"versions": {"tvm": 27, '),
        ('"seed": 3', '"seed": "three"'),
        ('"target": "cpu"', '"target": 7'),
    ],
)
def test_fields_of_wrong_types_make_a_line_bad(
    database: Database, tmp_path: Path, right: str, wrong: str
) -> None:
    path = tmp_path / "r.jsonl"
    export_jsonl(database, path)
    first, *others = path.read_text().splitlines()
    assert right in first
    path.write_text("\n".join([first.replace(right, wrong), *others]))
    with Database() as other:
        assert import_jsonl(other, path) == ImportCount(added=2, known=0, bad=1)


def test_files_that_cannot_be_used(database: Database, tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="give a file"):
        import_jsonl(database, tmp_path / "missing.jsonl")
    with pytest.raises(DatabaseError, match="give a file"):
        export_jsonl(database, tmp_path / "no" / "folder.jsonl")
