"""``ansor records``: a database of records as text, and text as records."""

from __future__ import annotations

import click

from ansor.database.database import Database
from ansor.database.jsonl import export_jsonl, import_jsonl


@click.group()
def records() -> None:
    """Exports the records of a database, or imports them."""


@records.command("export")
@click.argument("database", type=click.Path(exists=True, dir_okay=False))
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--target", help="Only the records of this target; all of them by default.")
def export(database: str, file: str, target: str | None) -> None:
    """Writes the records of DATABASE to FILE, a line of JSON each."""
    with Database(database) as source:
        count = export_jsonl(source, file, target)
    click.echo(f"{count} records exported to {file}")


@records.command("import")
@click.argument("database", type=click.Path(dir_okay=False))
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
def import_(database: str, file: str) -> None:
    """Adds the records of FILE to DATABASE, which is made if it does not exist."""
    with Database(database) as target:
        count = import_jsonl(target, file)
    click.echo(f"{count.added} records added, {count.known} known already, {count.bad} unreadable")
