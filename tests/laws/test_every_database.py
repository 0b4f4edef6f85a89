"""Laws of every database, for any place and any origin of its records.

There is one class, `Database`, over SQLite, and no protocol: a database in memory, a file, and a
file that another process opens differ by the path alone. JSON lines are no database, but a database
that was filled from them must answer like the one that wrote them. So each law writes into one
database and reads from another one that should hold the same:

- "memory" and "file": the same object.
- "reopened": the file, closed and opened again.
- "imported": a new database, filled by `export_jsonl` and `import_jsonl` (``ansor db``).
- "stored": a database filled from a store of records that another one has written to.

All five return the same records, orders, counts and targets. Checks and elections hold for one
machine, so JSON lines and stores leave them out. Only files have a format and several writers.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from database_records import FAILED, STEPS, make_task, program, start_writer, took
from hypothesis import given
from hypothesis import strategies as st

from ansor.database import Database, ImportCount, Record, export_jsonl, import_jsonl
from ansor.database.database import TaskEntry
from ansor.database.store import StoredDatabase
from ansor.errors import DatabaseError
from ansor.measure.result import ErrorKind, Measurement
from ansor.program.program import Program

Write = Callable[[Database], None]
Kept = Callable[[Write], AbstractContextManager[Database]]  # of what was written


@contextmanager
def memory(write: Write) -> Iterator[Database]:
    with Database() as database:
        write(database)
        yield database


@contextmanager
def file(write: Write) -> Iterator[Database]:
    with TemporaryDirectory() as folder, Database(Path(folder) / "r.sqlite") as database:
        write(database)
        yield database


@contextmanager
def reopened(write: Write) -> Iterator[Database]:
    with TemporaryDirectory() as folder:
        with Database(Path(folder) / "r.sqlite") as database:
            write(database)
        with Database(Path(folder) / "r.sqlite") as database:
            yield database


@contextmanager
def imported(write: Write) -> Iterator[Database]:
    with TemporaryDirectory() as folder, Database() as database:
        lines = Path(folder) / "r.jsonl"
        with Database() as source:
            write(source)
            count = export_jsonl(source, lines)
        assert import_jsonl(database, lines) == ImportCount(added=count, known=0, bad=0)
        yield database


class ListStore:
    """A store of records in this process."""

    def __init__(self) -> None:
        self.tasks: list[TaskEntry] = []
        self.records: list[Record] = []

    def load(self) -> tuple[list[TaskEntry], list[Record]]:
        return self.tasks, self.records

    def append(self, tasks: Sequence[TaskEntry], records: Sequence[Record]) -> None:
        self.tasks += tasks
        self.records += records

    def close(self) -> None:
        pass


@contextmanager
def stored(write: Write) -> Iterator[Database]:
    store = ListStore()
    with StoredDatabase(store) as database:
        write(database)
    with StoredDatabase(store) as database:
        yield database


KINDS = (memory, file, reopened, imported, stored)
DATABASES = pytest.mark.parametrize("kept", KINDS)
ON_ONE_MACHINE = pytest.mark.parametrize("kept", [memory, file, reopened])


def adding(*records: tuple[Any, Program, Measurement]) -> Write:
    """Adds records in their order."""

    def write(database: Database) -> None:
        for task, added, measurement in records:
            database.add(task, added, measurement)

    return write


@DATABASES
def test_records_come_back_as_they_were_added(kept: Kept) -> None:
    measurement = Measurement((3e-3, 1e-3, 2e-3), build_s=0.5, run_s=0.25, disturbed=True)

    def write(database: Database) -> None:
        database.add(make_task(), program(1), measurement, seed=7)
        database.add(make_task(), program(2), FAILED)

    with kept(write) as database:
        first, second = database.records("k1", "cpu")
        (entry,) = database.tasks()
        assert database.unreadable == 0
        assert database.has(first)
    assert (first.program, first.measurement) == (program(1), measurement)
    assert (second.program, second.measurement) == (program(2), FAILED)
    assert (first.origin.seed, second.origin.seed) == (7, None)
    assert first.latency_s == 2e-3
    assert abs(first.origin.time_s - time.time()) < 60
    assert first.origin.host
    assert "apache-tvm" in first.origin.versions
    assert (entry.key, entry.name, entry.definition) == ("k1", "task k1", "text of k1")


times = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=4).map(tuple)
measurements = st.one_of(
    st.builds(Measurement, times, build_s=st.floats(0, 1e3), run_s=st.floats(0, 1e3)),
    st.builds(Measurement, error=st.sampled_from(ErrorKind), message=st.text()),
)
programs = st.builds(
    Program,
    st.text(),
    st.just(STEPS),
    st.dictionaries(st.text(), st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5).map(tuple)),
)


@DATABASES
@given(
    st.lists(st.tuples(programs, measurements), max_size=4, unique_by=lambda pair: repr(pair[0])),
    st.none() | st.integers(0, 2**31),
)
def test_any_record_round_trips(
    kept: Kept, pairs: list[tuple[Program, Measurement]], seed: int | None
) -> None:
    with kept(lambda database: database.add_many(make_task(), pairs, seed)) as database:
        found = database.records("k1", "cpu")
        assert [(r.program, r.measurement) for r in found] == pairs
        assert all(r.origin.seed == seed for r in found)


@DATABASES
def test_best_gives_each_program_once_fastest_first(kept: Kept) -> None:
    pairs = [(1, 5.0), (2, 3.0), (1, 1.0), (3, 4.0), (2, 6.0)]
    records = [(make_task(), program(i), took(s)) for i, s in pairs]
    with kept(adding(*records, (make_task(), program(4), FAILED))) as database:
        found = [(r.program, r.latency_s) for r in database.best("k1", "cpu", n=9)]
        assert found == [(program(1), 1.0), (program(2), 3.0), (program(3), 4.0)]
        assert [r.program for r in database.best("k1", "cpu")] == [program(1)]
        assert database.best("nothing", "cpu") == []


@DATABASES
def test_a_program_found_wrong_is_never_best(kept: Kept) -> None:
    wrong = Measurement(error=ErrorKind.WRONG)
    task = make_task()
    write = adding((task, program(1), took(1.0)), (task, program(2), took(2.0)))
    with kept(write) as database:
        assert [r.program for r in database.best("k1", "cpu", 5)] == [program(1), program(2)]
        database.add(task, program(1), wrong)
        assert [r.program for r in database.best("k1", "cpu", 5)] == [program(2)]


@DATABASES
def test_winners_of_the_other_tasks_newest_first(kept: Kept) -> None:
    write = adding(
        (make_task("a"), program(1), took(2.0)),
        (make_task("b"), program(3), took(1.0)),
        (make_task("b"), program(4), took(3.0)),
        (make_task("a"), program(2), took(1.0)),
        (make_task("c"), program(5), FAILED),
        (make_task("d", "gpu"), program(6), took(1.0)),
        (make_task("e"), program(7), took(1.0)),
        (make_task("e"), program(7), Measurement(error=ErrorKind.WRONG)),
    )
    with kept(write) as database:
        assert [r.program for r in database.winners("cpu", besides="x")] == [program(2), program(3)]
        assert [r.program for r in database.winners("cpu", besides="a")] == [program(3)]
        assert database.winners("tpu", besides="x") == []


@DATABASES
def test_another_target_is_never_returned_but_can_be_seen(kept: Kept) -> None:
    with kept(adding((make_task(target="gpu"), program(1), took(1.0)))) as database:
        assert database.best("k1", "cpu") == []
        assert database.records("k1", "cpu") == []
        assert database.all_records("cpu") == []
        assert database.targets("k1") == ["gpu"]
        assert database.targets() == ["gpu"]
        assert database.targets("k2") == []
        assert len(database.all_records("gpu")) == 1


@DATABASES
def test_counts(kept: Kept) -> None:
    places = [("a", "cpu"), ("a", "gpu"), ("b", "cpu")]
    write = adding(*[(make_task(*place), program(1), took(1.0)) for place in places])
    with kept(write) as database:
        assert database.count() == 3
        assert database.count("a") == 2
        assert database.count(target="cpu") == 2
        assert database.count("b", "gpu") == 0


@DATABASES
def test_a_batch_is_all_or_nothing(kept: Kept) -> None:
    with kept(adding((make_task(), program(1), took(1.0)))) as database:
        bad: Any = object()
        with pytest.raises(AttributeError):
            database.add_many(make_task(), [(program(2), took(1.0)), (bad, took(1.0))])
        assert database.count() == 1
        database.add(make_task(), program(3), took(1.0))
        assert database.count() == 2


@DATABASES
def test_importing_twice_adds_nothing(kept: Kept, tmp_path: Path) -> None:
    lines = tmp_path / "r.jsonl"
    write = adding((make_task(), program(1), took(1.0)), (make_task("b"), program(2), FAILED))
    with kept(write) as database:
        assert export_jsonl(database, lines) == 2
        assert import_jsonl(database, lines) == ImportCount(added=0, known=2, bad=0)
        assert database.count() == 2


@ON_ONE_MACHINE
def test_the_last_check_of_a_program_counts(kept: Kept) -> None:
    def write(database: Database) -> None:
        assert database.checked(make_task(), program(1)) is None
        database.add_check(make_task(), program(1), 1e-6)
        database.add_check(make_task(), program(1), 2e-6)

    with kept(write) as database:
        assert database.checked(make_task(), program(1)) == 2e-6
        others = [(make_task("k2"), 1), (make_task(target="gpu"), 1), (make_task(), 2)]
        assert [database.checked(task, program(i)) for task, i in others] == [None] * 3


@ON_ONE_MACHINE
def test_the_last_election_of_a_function_counts(kept: Kept) -> None:
    task, variant = make_task(), make_task("k2")

    def write(database: Database) -> None:
        assert database.elected(task.key, task.target) is None
        database.elect(task.key, task, program(1))
        database.elect(task.key, variant, program(2))

    with kept(write) as database:
        last = database.elected(task.key, task.target)
        assert last is not None
        assert (last.task_key, last.program) == (variant.key, program(2))
        assert abs(last.time_s - time.time()) < 60
        assert database.elected(variant.key, task.target) is None
        assert database.elected(task.key, "gpu") is None


def test_checks_and_elections_stay_on_their_machine() -> None:
    def write(database: Database) -> None:
        database.add(make_task(), program(1), took(1.0))
        database.add_check(make_task(), program(1), 1e-6)
        database.elect("k1", make_task(), program(1))

    with imported(write) as database:
        assert database.count() == 1
        assert database.checked(make_task(), program(1)) is None
        assert database.elected("k1", "cpu") is None


# --- files ----------------------------------------------------------------------------------


def test_two_handles_write_and_see_each_other(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with Database(path) as one, Database(path) as other:
        for i in range(4):
            (one, other)[i % 2].add(make_task(), program(i), took(1.0))
            assert one.count() == other.count() == i + 1
        one.add_check(make_task(), program(0), 1e-6)
        other.elect("k1", make_task(), program(1))
        assert other.checked(make_task(), program(0)) == 1e-6
        elected = one.elected("k1", "cpu")
        assert elected is not None
        assert elected.program == program(1)


def test_several_processes_write(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    writers = [start_writer(path) for _ in range(2)]
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
        assert database.count("k1") >= 2 * 2 * 21


@pytest.mark.parametrize("version", ["99", "soon", ""])
def test_an_unknown_format_is_refused_and_left_as_it_is(tmp_path: Path, version: str) -> None:
    path = tmp_path / "r.sqlite"
    with Database(path) as database:
        database.add(make_task(), program(1), took(1.0))
    raw = sqlite3.connect(path)
    raw.execute("UPDATE meta SET value = ? WHERE name = 'format_version'", (version,))
    raw.commit()
    raw.close()
    before, neighbours = path.read_bytes(), sorted(tmp_path.iterdir())
    with pytest.raises(DatabaseError, match="newer"):
        Database(path)
    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == neighbours
