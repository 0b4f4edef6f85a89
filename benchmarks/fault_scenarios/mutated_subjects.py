"""The mutated files, and the allowed answers of their readers."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
from tvm import te

import ansor
from ansor.database import Database, export_jsonl, merge, opened_records, statistics
from ansor.database.rows import to_row
from ansor.database.runs import all_runs, readings_of, records_of
from ansor.errors import DatabaseError, TemplateMismatchError
from ansor.frontend import load_model
from ansor.frontend.deploy.metaschedule import RECORD_FILES
from ansor.templates.metaschedule_records import recorded_traces
from benchmarks.fault_scenarios.mutations import Random, changed_bytes, changed_lines, changed_value

_SIZE = 16
_TRIALS = 24
_AUTOTVM = (
    b'{"input": ["llvm", "dense", [["TENSOR", [16, 16], "float32"]]], "config": {"index": 7}, '
)
_AUTOTVM += b'"result": [[0.001], 0, 1.0, 1700000000.0], "version": 0.2}\n'


class LieError(Exception):
    """A reader accepts data that were not written."""


def operator() -> list[te.Tensor]:
    """A product of matrices and a maximum, which take microseconds."""
    a, b = (te.placeholder((_SIZE, _SIZE), name=name) for name in "AB")
    k = te.reduce_axis((0, _SIZE), name="k")
    c = te.compute((_SIZE, _SIZE), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return [a, b, te.compute((_SIZE, _SIZE), lambda i, j: te.max(c[i, j], 0.0), name="D")]


@dataclass(frozen=True)
class Originals:
    """The files of one run, in a folder."""

    folder: Path

    @property
    def database(self) -> Path:
        """Records, checks and an election."""
        return self.folder / "records.db"

    @property
    def log(self) -> Path:
        """The same records, and some of AutoTVM."""
        return self.folder / "log.jsonl"

    @property
    def model(self) -> Path:
        """The compiled network."""
        return self.folder / "model.ansor"

    @property
    def traces(self) -> Path:
        """A folder with a database of MetaSchedule."""
        return self.folder / "metaschedule"

    def write(self) -> None:
        """Tunes the operator and writes all files."""
        tuned = ansor.auto_schedule(
            operator(), trials=_TRIALS, database=self.database, threads=1, seed=0
        )
        tuned.save(self.model)
        tuned.export_metaschedule(self.traces, traces=True)
        with Database(self.database) as database:
            export_jsonl(database, self.log)
            database.connection.execute("PRAGMA journal_mode = DELETE")  # all of it in one file
        with self.log.open("ab") as stream:
            stream.write(_AUTOTVM * 3)


class Subject(Protocol):
    """One kind of file."""

    def mutate(self, folder: Path, random: Random) -> Path:
        """A changed copy in an empty folder."""

    def read(self, path: Path) -> None:
        """Reads it as a run does.

        Raises:
            AnsorError: it is refused.
            LieError: the accepted data were not written.
        """


@dataclass(frozen=True)
class DatabaseSubject:
    """A database."""

    originals: Originals
    by_value: bool

    @cached_property
    def _truth(self) -> frozenset[str]:
        with Database(self.originals.database) as database:
            return frozenset(_answers(database))

    def mutate(self, folder: Path, random: Random) -> Path:
        """See `Subject`."""
        path = folder / "r.db"
        if self.by_value:
            shutil.copy(self.originals.database, path)
            changed_value(path, random)
        else:
            path.write_bytes(changed_bytes(self.originals.database.read_bytes(), random))
        return path

    def read(self, path: Path) -> None:
        """See `Subject`."""
        with _opened(path) as database:
            _check(_answers(database), self._truth)
            statistics(database)
            for run in all_runs(database.connection):
                list(records_of(database.connection, run.number))
                readings_of(database.connection, run.number)
            with Database() as merged:
                merge(merged, [database])
                _check(_answers(merged), self._truth)
            export_jsonl(database, path.with_suffix(".jsonl"))
        with opened_records("log", path.with_suffix(".jsonl")) as lines:
            _check(_records(lines), self._truth)


@dataclass(frozen=True)
class LogSubject:
    """A log."""

    originals: Originals
    by_value: bool

    @cached_property
    def _truth(self) -> frozenset[str]:
        with opened_records("log", self.originals.log) as database:
            return frozenset(_answers(database))

    def mutate(self, folder: Path, random: Random) -> Path:
        """See `Subject`."""
        change = changed_lines if self.by_value else changed_bytes
        path = folder / "log.jsonl"
        path.write_bytes(change(self.originals.log.read_bytes(), random))
        return path

    def read(self, path: Path) -> None:
        """See `Subject`."""
        with opened_records("log", path) as database:
            _check(_answers(database), self._truth)


@dataclass(frozen=True)
class TraceSubject:
    """A database of MetaSchedule. A trace in it may be another one: each program is compared with
    its definition before it wins. It must replay, to a function of the same parameters."""

    originals: Originals
    by_value: bool

    @cached_property
    def _func(self) -> Any:
        return te.create_prim_func(operator())

    def mutate(self, folder: Path, random: Random) -> Path:
        """See `Subject`."""
        for name in RECORD_FILES:
            shutil.copy(self.originals.traces / name, folder / name)
        path = folder / RECORD_FILES[random.integers(2)]
        change = changed_lines if self.by_value else changed_bytes
        path.write_bytes(change(path.read_bytes(), random))
        return path

    def read(self, path: Path) -> None:
        """See `Subject`."""
        for trace in recorded_traces(path.parent, [self._func]):
            try:
                schedule = trace.fitted(self._func)
            except TemplateMismatchError:
                continue
            schedule.apply(
                self._func, {d.name: tuple(d.table[0].tolist()) for d in schedule.decisions}
            )


@dataclass(frozen=True)
class ModelSubject:
    """A saved network. It is loaded and run if it is accepted."""

    originals: Originals

    @cached_property
    def _truth(self) -> tuple[bytes, np.ndarray[Any, Any]]:
        data = self.originals.model.read_bytes()
        return data, ansor.load(self.originals.model, threads=1)(*_arrays())

    def mutate(self, folder: Path, random: Random) -> Path:
        """See `Subject`."""
        path = folder / "model.ansor"
        path.write_bytes(changed_bytes(self.originals.model.read_bytes(), random))
        return path

    def read(self, path: Path) -> None:
        """See `Subject`."""
        data, expected = self._truth
        load_model(path)
        if path.read_bytes() != data:
            raise LieError("a changed file is loaded")
        if not np.array_equal(ansor.load(path, threads=1)(*_arrays()), expected):
            raise LieError("a loaded network computes something else")


def subjects(folder: Path) -> dict[str, Subject]:
    """All subjects by name, of the originals in a folder."""
    files = Originals(folder)
    return {
        "database, bytes": DatabaseSubject(files, by_value=False),
        "database, values": DatabaseSubject(files, by_value=True),
        "log, bytes": LogSubject(files, by_value=False),
        "log, values": LogSubject(files, by_value=True),
        "saved network, bytes": ModelSubject(files),
        "MetaSchedule, bytes": TraceSubject(files, by_value=False),
        "MetaSchedule, values": TraceSubject(files, by_value=True),
    }


def _opened(path: Path) -> Database:
    """The database, or the same file as before."""
    before = path.read_bytes()
    try:
        return Database(path)
    except DatabaseError:
        if path.read_bytes() != before:
            raise LieError("a refused file is written to") from None
        raise


def _arrays() -> list[Any]:
    random = np.random.default_rng(0)
    return [random.standard_normal((_SIZE, _SIZE)).astype(np.float32) for _ in range(2)]


def _check(found: set[str], truth: frozenset[str]) -> None:
    if not found <= truth:
        raise LieError(min(found - truth))


def _records(database: Database) -> set[str]:
    return {repr(to_row(record)) for _, record in database.numbered()}


def _answers(database: Database) -> set[str]:
    """All that a run reads of a database, as texts."""
    found = _records(database) | {repr(entry) for entry in database.tasks() if entry.definition}
    for target in database.targets():
        found |= {repr(to_row(record)) for record in database.winners(target, besides="")}
        for key in {entry.key for entry in database.tasks()}:
            best = database.best(key, target, 2 * _TRIALS)
            found |= {repr(to_row(record)) for record in best}
            if (election := database.elected(key, target)) is not None:
                found.add(repr((key, target, election)))
            for record in best:
                task: Any = SimpleNamespace(key=key, target=target)
                if (difference := database.checked(task, record.program)) is not None:
                    found.add(repr((key, target, record.program, difference)))
    return found
