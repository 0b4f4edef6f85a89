"""A table of the runs in a database."""

from __future__ import annotations

from datetime import datetime, timezone

from ansor.database.database import Database
from ansor.database.runs import RunRow, all_runs, outcomes_of
from ansor.report.formatting import Column, align_columns, failures

_COLUMNS = (
    Column("began (UTC)", is_text=True),
    Column("state", is_text=True),
    Column("measured"),
    Column("failed", is_text=True),
    Column("minutes"),
    Column("arguments", is_text=True),
)


def runs_table(database: Database) -> str:
    """The runs, oldest first, with their progress and settings."""
    rows = [_row(database, run) for run in all_runs(database.connection)]
    return align_columns(_COLUMNS, rows)


def _row(database: Database, run: RunRow) -> tuple[str, ...]:
    outcomes = outcomes_of(database.connection, run.number)
    errors = {kind: count for kind, count in outcomes.items() if kind is not None}
    began = datetime.fromtimestamp(run.began_s, timezone.utc)
    return (
        f"{began:%Y-%m-%d %H:%M:%S}",
        _state(run),
        str(outcomes.total()),
        failures(errors) or "0",
        f"{run.spent_s / 60:.1f}",
        " ".join(f"{name}={value}" for name, value in run.settings.items()),
    )


def _state(run: RunRow) -> str:
    if run.finished:
        return "finished"
    return "running" if run.is_running else "interrupted"
