"""Tables of what a database holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone

from ansor.database.database import Database, TaskEntry
from ansor.database.record import Record
from ansor.report.formatting import align, microseconds, shorten

_NAME = 44  # characters of a function's name
_TARGET = 40  # characters of a target
_HEADER = ("task", "key", "latency µs", "sketch", "build ms", "seed", "measured (UTC)", "error")
_BEST_HEADER = ("task", "key", "records", "failed", "best µs", "sketch", "target")


def matching(database: Database, task: str | None) -> list[TaskEntry]:
    """Tasks whose key or name contains `task`; all for None."""
    return [e for e in database.tasks() if task is None or task in e.key or task in e.name]


def records_table(database: Database, task: str | None = None, limit: int = 20) -> str:
    """The newest records, the newest last."""
    names = {entry.key: entry.name for entry in matching(database, task)}
    found = [r for r in _all_records(database) if r.task_key in names]
    newest = sorted(found, key=lambda record: record.origin.time_s)[-limit:]
    table = align(_HEADER, [_row(record, names[record.task_key]) for record in newest], (0, 1, 7))
    return f"{table}\n\n{len(newest)} of {len(found)} records"


def best_table(database: Database, task: str | None = None) -> str:
    """The best program of every task on every target."""
    rows = [row for entry in matching(database, task) for row in _best_rows(database, entry)]
    return align(_BEST_HEADER, rows, (0, 1, 6))


def _all_records(database: Database) -> Iterable[Record]:
    for target in database.targets():
        yield from database.all_records(target)


def _row(record: Record, name: str) -> tuple[str, ...]:
    measurement, origin = record.measurement, record.origin
    error = f"{measurement.error.value}: {measurement.message}" if measurement.error else ""
    when = datetime.fromtimestamp(origin.time_s, timezone.utc)
    return (
        shorten(name, _NAME),
        record.task_key[:8],
        microseconds(record.latency_s),
        record.program.sketch,
        f"{measurement.build_s * 1e3:.0f}",
        "-" if origin.seed is None else str(origin.seed),
        f"{when:%Y-%m-%d %H:%M:%S}",
        shorten(error, 60),
    )


def _best_rows(database: Database, entry: TaskEntry) -> Sequence[tuple[str, ...]]:
    return [_best_row(database, entry, target) for target in database.targets(entry.key)]


def _best_row(database: Database, entry: TaskEntry, target: str) -> tuple[str, ...]:
    records = database.records(entry.key, target)
    best = database.best(entry.key, target)
    return (
        shorten(entry.name, _NAME),
        entry.key[:8],
        str(len(records)),
        str(sum(record.latency_s is None for record in records)),
        microseconds(best[0].latency_s if best else None),
        best[0].program.sketch if best else "-",
        shorten(_target_name(target), _TARGET),
    )


def _target_name(target: str) -> str:
    """A target's processor and threads, which is what tells targets apart at a glance."""
    try:
        options = json.loads(target)
    except ValueError:
        return target
    return f"{options.get('mcpu') or options.get('kind')}, {options.get('num-cores')} threads"
