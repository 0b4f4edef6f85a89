"""Databases that become one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from database_records import FAILED, make_task, program, took
from hypothesis import given
from hypothesis import strategies as st

from ansor.database import Database, MergeCount, merge
from ansor.database.record import Record


def records(database: Database) -> list[Record]:
    return [record for _, record in database.numbered()]


numbers = st.lists(st.integers(0, 3), max_size=4)


@given(st.lists(numbers, max_size=3), st.lists(st.integers(0, 5), max_size=6))
def test_nothing_is_lost_and_nothing_is_twice(parts: list[list[int]], order: list[int]) -> None:
    """For files with any common records, in any number and order."""
    with Database() as whole:
        databases = [Database() for _ in parts]
        for database, part in zip(databases, parts, strict=True):
            for number in part:
                database.add(make_task(f"k{number % 2}"), program(number), took(1.0 + number))
        sources = [databases[i % len(databases)] for i in order] if databases else []
        count = merge(whole, sources)
        expected = [r for d in databases if d in sources for r in records(d)]
        found = records(whole)
        assert count.added == len(found) == len(expected)
        assert count.added + count.known == sum(len(records(source)) for source in sources)
        assert all(record in found for record in expected)
        assert {e.key for e in whole.tasks()} == {r.task_key for r in expected}
        for database in databases:
            database.close()


def test_merging_again_adds_nothing(tmp_path: Path) -> None:
    with Database(tmp_path / "one") as one, Database(tmp_path / "two") as two:
        two.add_many(make_task(), [(program(1), took(1.0)), (program(2), FAILED)])
        before = records(two)
        assert merge(one, [two]) == MergeCount(added=2, known=0, damaged=0)
        assert merge(one, [two, one]) == MergeCount(added=0, known=4, damaged=0)
        assert records(one) == records(two) == before


def test_checks_and_the_later_elections_come_along() -> None:
    task = make_task()
    with Database() as one, Database() as two:
        one.elect(task.key, task, program(1))
        two.add(task, program(2), took(1.0))
        two.elect(task.key, task, program(2))
        two.add_check(task, program(2), 1e-6)
        merge(one, [two])
        elected = one.elected(task.key, task.target)
        assert elected is not None
        assert elected.program == program(2)
        assert one.checked(task, program(2)) == 1e-6
        one.elect(task.key, task, program(3))
        merge(one, [two])
        elected = one.elected(task.key, task.target)
        assert elected is not None
        assert elected.program == program(3)


@pytest.mark.parametrize(
    ("change", "count", "readable"),
    [
        (
            "UPDATE records SET sketch = 'of another version', checksum = NULL WHERE id = 1",
            (2, 0),
            1,
        ),
        ("UPDATE records SET message = CAST(x'ff' AS TEXT) WHERE id = 1", (1, 1), 1),
        ("UPDATE records SET task_key = 'none' WHERE id = 1", (1, 1), 1),
        ("UPDATE tasks SET name = CAST(x'ff' AS TEXT)", (2, 0), 2),
        ("UPDATE tasks SET name = 'another'", (2, 0), 2),
    ],
)
def test_what_cannot_be_read_is_added_where_a_file_can_contain_it(
    tmp_path: Path, change: str, count: tuple[int, int], readable: int
) -> None:
    path = tmp_path / "r.sqlite"
    with Database(path) as source:
        source.add_many(make_task(), [(program(1), took(1.0)), (program(2), took(2.0))])
    raw = sqlite3.connect(path)
    raw.execute(change)
    raw.commit()
    raw.close()
    with Database() as database, Database(path) as source:
        added, damaged = count
        assert merge(database, [source]) == MergeCount(added, 0, damaged)
        assert len(records(database)) == readable
        assert database.count() == added
