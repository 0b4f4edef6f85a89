"""Tables of a database's contents."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone

from ansor.database.database import Database, TaskEntry
from ansor.database.record import Record
from ansor.database.statistics import Statistics
from ansor.report.formatting import Column, align_columns, failures, microseconds

_TASK = Column("task", is_text=True, most=44)
_KEY = Column("key", is_text=True)
_COLUMNS = (
    _TASK,
    _KEY,
    Column("latency µs"),
    Column("machine", is_text=True),
    Column("sketch"),
    Column("build ms"),
    Column("seed"),
    Column("measured (UTC)"),
    Column("error", is_text=True, most=60),
)
_BEST_COLUMNS = (
    _TASK,
    _KEY,
    Column("records"),
    Column("failed", is_text=True),
    Column("best µs"),
    Column("sketch"),
    Column("target", is_text=True, most=40),
)


def matching(database: Database, task: str | None) -> list[TaskEntry]:
    """Tasks whose key or name contains `task`; all for None."""
    return [e for e in database.tasks() if task is None or task in e.key or task in e.name]


def records_table(database: Database, task: str | None = None, limit: int = 20) -> str:
    """The newest records, the newest last."""
    names = {entry.key: entry.name for entry in matching(database, task)}
    found = [r for r in _all_records(database) if r.task_key in names]
    newest = sorted(found, key=lambda record: record.origin.time_s)[-limit:]
    table = align_columns(_COLUMNS, [_row(record, names[record.task_key]) for record in newest])
    return f"{table}\n\n{len(newest)} of {len(found)} records"


def best_table(database: Database, task: str | None = None) -> str:
    """The best program of every task on every target."""
    rows = [row for entry in matching(database, task) for row in _best_rows(database, entry)]
    return align_columns(_BEST_COLUMNS, rows)


def statistics_text(counts: Statistics) -> str:
    """The counts of a database, a line each."""
    size = "in memory" if counts.size_bytes is None else f"{counts.size_bytes / 2**20:.1f} MiB"
    targets = Counter[str]()
    for name, count in counts.targets.items():
        targets[target_name(name)] += count
    lines = {
        "records": f"{counts.records:,}",
        "unreadable": f"{counts.unreadable:,}",
        "tasks": f"{counts.tasks:,}",
        "targets": _shares(targets),
        "hosts": _shares(counts.hosts),
        "versions": _shares(counts.versions),
        "failures": _shares(counts.failures),
        "checks": f"{counts.checks:,}",
        "elections": f"{counts.elections:,}",
        "size": size,
    }
    return "\n".join(f"{name:11s} {text}" for name, text in lines.items())


def _shares(counts: Mapping[str, int]) -> str:
    """Names with their counts, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    return "; ".join(f"{name}: {count:,}" for name, count in ordered) or "none"


def _all_records(database: Database) -> Iterable[Record]:
    for target in database.targets():
        yield from database.all_records(target)


def _row(record: Record, name: str) -> tuple[str, ...]:
    measurement, origin = record.measurement, record.origin
    error = f"{measurement.error.value}: {measurement.message}" if measurement.error else ""
    when = datetime.fromtimestamp(origin.time_s, timezone.utc)
    return (
        name,
        record.task_key[:8],
        microseconds(record.latency_s),
        "disturbed" if measurement.disturbed else "",
        record.program.sketch,
        f"{measurement.build_s * 1e3:.0f}",
        "-" if origin.seed is None else str(origin.seed),
        f"{when:%Y-%m-%d %H:%M:%S}",
        error,
    )


def _best_rows(database: Database, entry: TaskEntry) -> Sequence[tuple[str, ...]]:
    return [_best_row(database, entry, target) for target in database.targets(entry.key)]


def _best_row(database: Database, entry: TaskEntry, target: str) -> tuple[str, ...]:
    records = database.records(entry.key, target)
    best = database.best(entry.key, target)
    return (
        entry.name,
        entry.key[:8],
        str(len(records)),
        failures(Counter(r.measurement.error.value for r in records if r.measurement.error)) or "0",
        microseconds(best[0].latency_s if best else None),
        best[0].program.sketch if best else "-",
        target_name(target),
    )


def target_name(target: str) -> str:
    """A target's processor and threads, which is what tells targets apart at a glance."""
    try:
        options = json.loads(target)
    except ValueError:
        return target
    if not isinstance(options, dict):
        return target
    return f"{options.get('mcpu') or options.get('kind')}, {options.get('num-cores')} threads"
