"""Records that are removed from a database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from database_records import FAILED, make_task, program, took
from hypothesis import given
from hypothesis import strategies as st

from ansor.database import Database, PruneCount, PruneRequest, prune
from ansor.errors import ArgumentError
from ansor.measure.result import ErrorKind, Measurement

WRONG = Measurement(error=ErrorKind.WRONG)
OUTCOMES = (FAILED, WRONG, took(1.0), took(2.0), took(3.0))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with records of two tasks."""
    path = tmp_path / "r.sqlite"
    with Database(path) as database:
        for key in ("k1", "k2"):
            pairs = [(program(i), took(float(i))) for i in (3, 1, 2, 1)]
            database.add_many(make_task(key), [*pairs, (program(4), FAILED)])
        database.elect("k1", make_task("k1"), program(3))
        database.add_check(make_task("k1"), program(2), 1e-6)
        database.add_check(make_task("k2"), program(1), 1e-6)
    return path


def change(path: Path, statement: str) -> None:
    raw = sqlite3.connect(path)
    raw.execute(statement)
    raw.commit()
    raw.close()


def left(database: Database) -> list[tuple[str, int]]:
    return [(r.task_key, r.program.values["i"][0]) for _, r in database.numbered()]


def test_the_best_and_the_elected_programs_stay(path: Path) -> None:
    with Database(path) as database:
        assert prune(database, PruneRequest(best=1)) == PruneCount(removed=5, kept=5)
        assert left(database) == [("k1", 3), ("k1", 1), ("k1", 1), ("k2", 1), ("k2", 1)]
        assert database.elected("k1", "cpu") is not None
        assert database.checked(make_task("k1"), program(2)) is None
        assert database.checked(make_task("k2"), program(1)) is not None


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(OUTCOMES)), max_size=12),
    st.builds(PruneRequest, st.integers(1, 3), st.booleans())
    | st.just(PruneRequest(failures=True)),
)
def test_the_best_are_the_same_as_before(
    pairs: list[tuple[int, Measurement]], request: PruneRequest
) -> None:
    with Database() as database:
        database.add_many(make_task(), [(program(i), outcome) for i, outcome in pairs])
        count = 9 if request.best is None else request.best
        before = database.best("k1", "cpu", count)
        expected = prune(database, request, dry_run=True)
        assert database.count() == len(pairs)
        assert prune(database, request) == expected
        assert database.count() == expected.kept
        assert database.best("k1", "cpu", count) == before
        assert len(database.best("k1", "cpu", 9)) <= count
        again = prune(database, request)
        assert again == PruneCount(removed=0, kept=expected.kept)


def test_a_wrong_program_stays_wrong_as_long_as_it_has_a_latency() -> None:
    task = make_task()
    with Database() as database:
        database.add_many(task, [(program(1), took(1.0)), (program(1), WRONG), (program(2), WRONG)])
        assert prune(database, PruneRequest(failures=True)) == PruneCount(removed=1, kept=2)
        assert database.best("k1", "cpu") == []


@pytest.mark.parametrize(
    ("column", "request_"),
    [
        ("versions = '{}'", PruneRequest(other_versions=True)),
        ("host = 'another'", PruneRequest(other_hosts=True)),
    ],
)
def test_records_of_other_versions_and_machines(
    path: Path, column: str, request_: PruneRequest
) -> None:
    change(path, f"UPDATE records SET {column}, checksum = NULL WHERE task_key = 'k2'")
    with Database(path) as database:
        assert prune(database, request_) == PruneCount(removed=5, kept=5)
        assert {key for key, _ in left(database)} == {"k1"}
        assert [entry.key for entry in database.tasks()] == ["k1"]


def test_unreadable_records_stay_unless_they_are_named(path: Path) -> None:
    change(path, "UPDATE records SET latency_s = 9 WHERE id = 1")
    with Database(path) as database:
        assert prune(database, PruneRequest(best=1)) == PruneCount(removed=5, kept=5)
        assert prune(database, PruneRequest(unreadable=True)) == PruneCount(removed=1, kept=4)


def test_the_file_becomes_smaller(path: Path) -> None:
    with Database(path) as database:
        pairs = [(program(i), took(1.0 + i)) for i in range(500)]
        database.add_many(make_task(), pairs)
    before = path.stat().st_size
    with Database(path) as database:
        prune(database, PruneRequest(best=1))
    assert path.stat().st_size < before / 2


@pytest.mark.parametrize("request_", [PruneRequest(), PruneRequest(best=0)])
def test_a_request_for_nothing_is_refused(request_: PruneRequest) -> None:
    with Database() as database, pytest.raises(ArgumentError, match=r"request=|best=0"):
        prune(database, request_)
