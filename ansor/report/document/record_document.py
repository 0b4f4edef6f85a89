"""The report of the records in a database or a log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone

from ansor.database.database import Database
from ansor.database.record import Record
from ansor.report.database_tables import target_name
from ansor.report.document.curves import failure_counts, function_curves
from ansor.report.document.document import Document, FunctionRow
from ansor.report.document.search_data import Trial

_NETWORK = "Give the folder that `ansor tune` or `ansor demo` wrote: records have no network."
_ABSENT = ("comparison", "machine", "network_curve", "predictions", "programs")


def record_document(title: str, database: Database) -> Document:
    """Everything that records tell.

    Args:
        title: name of the database.
        database: open.

    Raises:
        DatabaseError: the file is damaged.
    """
    names = {entry.key: entry.name for entry in database.tasks()}
    records = sorted(_all_records(database), key=lambda record: record.origin.time_s)
    is_alone = len({record.target for record in records}) == 1
    functions = {_function(record): _title(names, record, is_alone) for record in records}
    trials = _trials(records)
    return Document(
        title=title,
        trials=len(records),
        functions=_rows(database, records, functions),
        function_curves=function_curves(trials, functions),
        failures=failure_counts(trials, functions),
        environment=_environment(records),
        absent=dict.fromkeys(_ABSENT, _NETWORK),
    )


def _all_records(database: Database) -> Iterable[Record]:
    for target in database.targets():
        yield from database.all_records(target)


def _function(record: Record) -> str:
    """A task on a target."""
    return f"{record.task_key} {record.target}"


def _title(names: Mapping[str, str], record: Record, is_alone: bool) -> str:
    """The name of a task and its key, which tells tasks of one name apart.

    Args:
        names: of the tasks by their keys.
        record: of the task.
        is_alone: whether all records are of one target.
    """
    title = f"{names.get(record.task_key, 'task')} {record.task_key[:8]}"
    return title if is_alone else f"{title} on {target_name(record.target)}"


def _trials(records: Sequence[Record]) -> tuple[Trial, ...]:
    """The records in the order of their measurement."""
    began_s = records[0].origin.time_s if records else 0.0
    return tuple(
        Trial(
            _function(record),
            record.origin.time_s - began_s,
            None,
            record.latency_s,
            None if record.measurement.error is None else record.measurement.error.value,
            record.measurement.message,
        )
        for record in records
    )


def _rows(
    database: Database, records: Sequence[Record], functions: Mapping[str, str]
) -> tuple[FunctionRow, ...]:
    """The tasks, the slowest first."""
    by_function: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_function[_function(record)].append(record)
    rows = [_row(database, functions[key], own) for key, own in by_function.items()]
    return tuple(sorted(rows, key=lambda row: row.latency_s or 0.0, reverse=True))


def _row(database: Database, name: str, records: Sequence[Record]) -> FunctionRow:
    best = next(iter(database.best(records[0].task_key, records[0].target)), None)
    return FunctionRow(
        name=name,
        calls=None,
        latency_s=None if best is None else best.latency_s,
        total_s=None,
        share=None,
        trials=len(records),
        failed=sum(record.latency_s is None for record in records),
        sketch="" if best is None else best.program.sketch,
    )


def _environment(records: Sequence[Record]) -> dict[str, str]:
    """A common property of records, and their number."""
    if not records:
        return {}
    targets = Counter(record.target for record in records)
    versions = Counter(
        f"{name} {version}" for r in records for name, version in r.origin.versions.items()
    )
    first, last = (_day(record) for record in (records[0], records[-1]))
    return {
        "measured": first if first == last else f"{first} to {last}",
        "targets": _counts(targets),
        "versions": _counts(versions),
    }


def _day(record: Record) -> str:
    return f"{datetime.fromtimestamp(record.origin.time_s, timezone.utc):%Y-%m-%d}"


def _counts(counts: Counter[str]) -> str:
    return "; ".join(f"{text}: {count:,} records" for text, count in counts.most_common())
