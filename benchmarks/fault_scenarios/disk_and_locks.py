"""Full disks, read-only folders, and a database that another process holds."""

from __future__ import annotations

import sqlite3
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import ansor
from ansor.callbacks import Callback, Finish, Round
from ansor.errors import AnsorError
from benchmarks.fault_scenarios.disks import CannotMountError, empty, fill, read_only, small_disk
from benchmarks.fault_scenarios.row import Case, Row, Scale
from benchmarks.fault_scenarios.small_run import Files, operator

_TRIALS = 32  # two rounds
_DISK_BYTES = 4 << 20  # a database of a few dozen records takes 0.2 MB
_SPENT = "all trials spent"
_LOCKED_S: Mapping[Scale, float] = MappingProxyType({Scale.QUICK: 1.0, Scale.FULL: 30.0})
_ANSWER = "a clear error or a wait"
_KEPT = "earlier records are kept, and a later run ends"


@dataclass
class _AfterFirstRound(Callback):
    """Injects a fault after the first round.

    Attributes:
        trials: programs that were recorded before the fault.
        reason: why the search has ended.
    """

    inject: Callable[[], object] = lambda: None
    trials: int = 0
    reason: str = ""

    def on_round(self, done: Round) -> None:
        """See `Callback`."""
        if not self.trials:
            self.trials = done.trials
            self.inject()

    def on_finish(self, finish: Finish) -> None:
        """See `Callback`."""
        self.reason = finish.reason


@dataclass
class _Attempt:
    """A run of a case and its outcome.

    Attributes:
        files: of the run.
        inject: the fault that comes after the first round.
        message: of the error, "" if the run ended as it should.
        trials: programs that were recorded before the fault.
    """

    files: Files
    inject: Callable[[], object] = lambda: None
    message: str = field(default="", init=False)
    trials: int = field(default=0, init=False)

    def run(self) -> _Attempt:
        """Tunes the small operator."""
        callback = _AfterFirstRound(self.inject)
        try:
            with warnings.catch_warnings():
                # Checks and elections that cannot be kept are warnings.
                warnings.simplefilter("ignore", RuntimeWarning)
                ansor.auto_schedule(
                    operator(),
                    trials=_TRIALS,
                    database=self.files.database,
                    log=self.files.log,
                    callbacks=[callback],
                )
            self.message = "" if callback.reason == _SPENT else callback.reason
        except AnsorError as error:
            self.message = str(error)
        self.trials = callback.trials
        return self

    def names(self, file: Path) -> bool:
        """Whether the error names a file and what to do."""
        return str(file) in self.message and "; " in self.message


def run(scale: Scale) -> list[Row]:
    """One case after the other."""
    cases = (_full_before, _full_meanwhile, _full_log, _read_only_new, _read_only_known)
    rows = [row for case in cases for row in _rows_of(case)]
    return rows + _locked_before(_LOCKED_S[scale]) + _locked_meanwhile(_LOCKED_S[scale])


def _rows_of(case: Callable[[Path, Case], list[Row]]) -> list[Row]:
    """The rows of a case on a small disk."""
    name, injected = _INJECTED[case]
    about = Case(name, injected)
    try:
        with small_disk(_DISK_BYTES) as disk:
            return case(disk, about)
    except CannotMountError as error:
        return [about.row(_ANSWER, f"no mount: {error}", None)]


def _full_before(disk: Path, case: Case) -> list[Row]:
    files = Files.of(disk)
    fill(disk)
    attempt = _Attempt(files).run()
    empty(disk)
    return [_answer(case, attempt, files.database), _later(case, files, 0)]


def _full_meanwhile(disk: Path, case: Case) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        files = Files(disk / "records.db", Path(folder) / "run.jsonl")
        attempt = _Attempt(files, lambda: fill(disk)).run()
        empty(disk)
        return [_answer(case, attempt, files.database), _later(case, files, attempt.trials)]


def _full_log(disk: Path, case: Case) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder) / "records.db", disk / "run.jsonl")
        attempt = _Attempt(files, lambda: fill(disk)).run()
        empty(disk)
        return [_answer(case, attempt, files.log), _later(case, files, attempt.trials)]


def _read_only_new(disk: Path, case: Case) -> list[Row]:
    files = Files.of(disk)
    with read_only(disk):
        attempt = _Attempt(files).run()
    return [_answer(case, attempt, files.database), _later(case, files, 0)]


def _read_only_known(disk: Path, case: Case) -> list[Row]:
    files = Files.of(disk)
    before = _Attempt(files).run()
    with read_only(disk):
        attempt = _Attempt(files).run()
    return [_answer(case, attempt, files.database), _later(case, files, before.trials)]


_INJECTED: Mapping[Callable[[Path, Case], list[Row]], tuple[str, str]] = MappingProxyType(
    {
        _full_before: ("full disk", "the disk is full before the run"),
        _full_meanwhile: ("full disk in a run", "the database's disk is full after a round"),
        _full_log: ("full disk of the log", "the log's disk is full after a round"),
        _read_only_new: ("read-only folder", "the folder of a new database is read-only"),
        _read_only_known: ("read-only database", "the folder of a known database is read-only"),
    }
)


def _locked_before(seconds: float) -> list[Row]:
    case = Case("locked before a run", f"another connection holds the lock for {seconds:.0f} s")
    with tempfile.TemporaryDirectory() as folder:
        files = Files.of(Path(folder))
        before = _Attempt(files).run()
        with _locking(files.database, seconds) as lock:
            lock()
            attempt = _Attempt(files).run()
        return [_answer(case, attempt, files.database), _later(case, files, before.trials)]


def _locked_meanwhile(seconds: float) -> list[Row]:
    case = Case("locked in a run", f"another connection holds the lock for {seconds:.0f} s")
    with tempfile.TemporaryDirectory() as folder:
        files = Files.of(Path(folder))
        with _locking(files.database, seconds) as lock:
            attempt = _Attempt(files, lock).run()
        return [_answer(case, attempt, files.database), _later(case, files, attempt.trials)]


@contextmanager
def _locking(database: Path, seconds: float) -> Iterator[Callable[[], None]]:
    """A function that takes the write lock of a database for some seconds, in the background."""
    threads: list[threading.Thread] = []

    def lock() -> None:
        locked = threading.Event()
        threads.append(threading.Thread(target=_hold, args=(database, seconds, locked)))
        threads[-1].start()
        locked.wait()

    yield lock
    for thread in threads:
        thread.join()


def _hold(database: Path, seconds: float, locked: threading.Event) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        locked.set()
        threading.Event().wait(seconds)
        connection.execute("ROLLBACK")


def _answer(case: Case, attempt: _Attempt, file: Path) -> Row:
    """Whether a run waited or named the file that it could not use."""
    observed = attempt.message.replace(str(file.parent), "…") or "the run waits and ends"
    return case.row(_ANSWER, observed, not attempt.message or attempt.names(file))


def _later(case: Case, files: Files, earlier: int) -> Row:
    """Whether the database is sound, has the earlier records, and takes in a later run."""
    kept = files.count() if files.database.exists() else 0
    lost = files.lost() if files.database.exists() else 0
    failed = _Attempt(files).run().message
    sound, after = files.is_sound(), files.count()
    observed = f"{kept} records of {earlier}, {lost} lines of the log lost, {after} later"
    observed += "" if sound else ", damaged"
    observed += f", {failed}" if failed else ""
    holds = kept >= earlier and not lost and sound and not failed and _is_spent(kept, after)
    return case.row(_KEPT, observed, holds)


def _is_spent(before: int, after: int) -> bool:
    """Whether the trials of a run are spent: all of a new run, or the rest of the failed one."""
    return after >= before + _TRIALS or before < after == _TRIALS
