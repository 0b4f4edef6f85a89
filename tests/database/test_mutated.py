"""Any change of a database: its records are those that were written, or it is refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from database_records import FAILED, make_task, program, took
from hypothesis import given, settings
from hypothesis import strategies as st

from ansor.database import Database, Record
from ansor.errors import DatabaseError
from benchmarks.fault_scenarios.mutations import changed_bytes, changed_value


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[Record]]:
    """A database, and its records."""
    path = tmp_path_factory.mktemp("mutated") / "r.sqlite"
    with Database(path) as database:
        for key in ("k1", "k2"):
            pairs = [(program(i), took(1.0 + i)) for i in range(4)]
            database.add_many(make_task(key), [*pairs, (program(9), FAILED)], seed=3)
        database.add_check(make_task(), program(1), 1e-6)
        database.elect("k1", make_task(), program(1))
        records = [record for _, record in database.numbered()]
    return path.read_bytes(), records


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), by_value=st.booleans())
def test_no_change_makes_another_record(
    written: tuple[bytes, list[Record]], seed: int, by_value: bool
) -> None:
    data, records = written
    random = np.random.default_rng(seed)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "r.sqlite"
        path.write_bytes(data if by_value else changed_bytes(data, random))
        if by_value:
            changed_value(path, random)
        before = path.read_bytes()
        try:
            database = Database(path)
        except DatabaseError:
            assert path.read_bytes() == before
            return
        with database:
            try:
                found = [record for _, record in database.numbered()]
                best = database.best("k1", "cpu", 9)
                elected = database.elected("k1", "cpu")
                checked = database.checked(make_task(), program(1))
            except DatabaseError:
                return
        assert all(record in records for record in [*found, *best])
        assert elected is None or elected.program == program(1)
        assert checked in (None, 1e-6)


@pytest.mark.parametrize("version", ["0", "1", "2"])
def test_a_file_that_names_an_earlier_format_is_left_as_it_is(tmp_path: Path, version: str) -> None:
    path = tmp_path / "r.sqlite"
    Database(path).close()
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA journal_mode = DELETE")
    raw.execute("UPDATE meta SET value = ? WHERE name = 'format_version'", (version,))
    raw.commit()
    raw.close()
    before = path.read_bytes()
    with pytest.raises(DatabaseError, match=r"r\.sqlite.*(already exists|duplicate column)"):
        Database(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
