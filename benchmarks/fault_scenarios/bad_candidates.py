"""A search in which one candidate of five is bad."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import psutil

import ansor
from ansor.callbacks import Callback, Finish, Round, Start
from ansor.config import FULL, TuneConfig
from ansor.database.database import Database
from ansor.database.record import Record
from ansor.measure.result import ErrorKind
from benchmarks.fault_scenarios.faulty_programs import BAD_OF, KINDS, SIZE, Fault, fault_of, faulty
from benchmarks.fault_scenarios.processes import left_after, marking
from benchmarks.fault_scenarios.row import Case, Row, Scale

_CANDIDATES: Mapping[Scale, int] = MappingProxyType(
    {Scale.QUICK: BAD_OF * len(Fault), Scale.FULL: 1000}
)
# Half of the default time limits and the least memory, because hundreds of candidates use up all
# that they may have. A search without a gain does not end early.
_CONFIG = replace(
    FULL,
    measure=replace(FULL.measure, build_timeout_s=4.0, run_timeout_s=5.0, memory_share=0.0),
    scheduler=replace(FULL.scheduler, patience=_CANDIDATES[Scale.FULL]),
)
_MOST_GROWTH_BYTES = 200e6
_WITHIN_S = 5.0  # until all processes have ended
_TOLERANCE = 1e-4  # of the result, relative to the largest value


@dataclass
class _Watcher(Callback):
    """Follows the resident memory of this process during the search."""

    before_bytes: int = 0
    most_bytes: int = 0
    finish: Finish | None = None

    def on_start(self, start: Start) -> None:
        """See `Callback`."""
        self.before_bytes = self.most_bytes = psutil.Process().memory_info().rss

    def on_round(self, done: Round) -> None:
        """See `Callback`."""
        self.most_bytes = max(self.most_bytes, psutil.Process().memory_info().rss)

    def on_finish(self, finish: Finish) -> None:
        """See `Callback`."""
        self.finish = finish

    @property
    def growth_bytes(self) -> int:
        """Between the start of the search and its largest memory."""
        return self.most_bytes - self.before_bytes


def run(scale: Scale) -> list[Row]:
    """One search; see `KINDS` for its faults."""
    count = _CANDIDATES[scale]
    bad = sum(fault_of(number) is not None for number in range(count))
    watcher = _Watcher()
    case = Case("search", f"{bad} bad of {count} candidates, {len(Fault)} kinds of faults")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "records.db"
        with marking() as mark:
            error = search(count, file, watcher)
        left = left_after(mark, _WITHIN_S)
        with Database(file) as database:
            records = [r for target in database.targets() for r in database.all_records(target)]
    finish = watcher.finish
    reason = "-" if finish is None else f"{finish.reason} after {finish.trials} candidates"
    growth = f"{watcher.growth_bytes / 1e6:.0f} MB"
    return [
        case.row("the search ends", reason, finish is not None and finish.trials == count),
        _records_row(case, records, count),
        case.row("no process is left", str(left), left == 0),
        case.row(
            f"the memory of the parent grows by less than {_MOST_GROWTH_BYTES / 1e6:.0f} MB",
            growth,
            watcher.growth_bytes < _MOST_GROWTH_BYTES,
        ),
        case.row("the result is right", f"error {error:.1e}", error <= _TOLERANCE),
    ]


def search(count: int, file: Path, watcher: Callback, config: TuneConfig = _CONFIG) -> float:
    """Measures all programs of the template; the largest error of the tuned program, relative to
    the largest value.

    Args:
        count: number of the programs.
        file: database of the records.
        watcher: told of the search.
        config: of the search.
    """
    tuned = ansor.auto_schedule(
        faulty(count),
        trials=count,
        policy="grid",  # each program once, whatever was measured
        database=file,
        config=config,
        callbacks=[watcher],
    )
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((SIZE, SIZE)).astype(np.float32) for _ in range(2))
    expected = a @ b
    return float(np.abs(np.asarray(tuned(a, b)) - expected).max() / np.abs(expected).max())


def _records_row(case: Case, records: Sequence[Record], count: int) -> Row:
    """Whether each program has a record with the kind of its fault.

    A program that might win and is found wrong has a second record.
    """
    seen = [record for record in records if record.measurement.error is not ErrorKind.WRONG]
    numbers = Counter(number_of(record) for record in seen)
    misfits = [record for record in seen if not _fits(record)]
    later = [r for r in records if r.measurement.error is ErrorKind.WRONG]
    misfits += [r for r in later if fault_of(number_of(r)) is not Fault.WRONG]
    observed = f"{len(seen)} records of {len(numbers)} candidates, {len(misfits)} of another kind"
    if misfits:
        first = misfits[0]
        fault, error = fault_of(number_of(first)), first.measurement.error
        observed += f", such as {fault and fault.value}: {error and error.value}"
    complete = len(seen) == len(numbers) == count
    return case.row(f"{count} records of the right kind", observed, complete and not misfits)


def _fits(record: Record) -> bool:
    fault = fault_of(number_of(record))
    expected = None if fault is None else KINDS[fault]
    return record.measurement.error is expected


def number_of(record: Record) -> int:
    """The number of a measured program."""
    ((number,),) = record.program.values.values()
    return number
