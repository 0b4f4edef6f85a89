"""``ansor db``: statistics of databases, and databases merged, exported, imported and pruned."""

from __future__ import annotations

from contextlib import ExitStack

import click

_EXISTING = click.Path(exists=True, dir_okay=False)
_FILE = click.Path(dir_okay=False)


@click.group("db")
def database_commands() -> None:
    """Counts, merges, exports, imports and prunes the records of databases."""


@database_commands.command()
@click.argument("database", type=_EXISTING)
def stats(database: str) -> None:
    """Checks DATABASE, or a log, and counts what it contains."""
    from ansor.database.log import opened_records
    from ansor.database.statistics import statistics
    from ansor.report.database_tables import best_table, statistics_text

    with opened_records("database", database) as opened:
        click.echo(f"{statistics_text(statistics(opened))}\n\n{best_table(opened)}")


@database_commands.command("merge")
@click.argument("database", type=_FILE)
@click.argument("files", type=_EXISTING, nargs=-1, required=True, metavar="FILE...")
def merge_command(database: str, files: tuple[str, ...]) -> None:
    """Adds the records of FILEs, databases or logs, to DATABASE, which may be new.

    Records that DATABASE has already are not added again. FILEs stay as they are.
    """
    from ansor.database.database import Database
    from ansor.database.log import opened_records
    from ansor.database.merge import merge

    with ExitStack() as stack:
        sources = [stack.enter_context(opened_records("file", file)) for file in files]
        count = merge(stack.enter_context(Database(database)), sources)
    click.echo(f"{count.added} records added, {count.known} known already, {count.damaged} damaged")


@database_commands.command("export")
@click.argument("database", type=_EXISTING)
@click.argument("file", type=_FILE)
@click.option("--target", help="Only the records of this target; all of them by default.")
def export_command(database: str, file: str, target: str | None) -> None:
    """Writes the records of DATABASE to FILE, a line of JSON each."""
    from ansor.database.jsonl import export_jsonl
    from ansor.database.log import opened_records

    with opened_records("database", database) as source:
        count = export_jsonl(source, file, target)
    click.echo(f"{count} records exported to {file}")


@database_commands.command("import")
@click.argument("database", type=_FILE)
@click.argument("file", type=_EXISTING)
def import_command(database: str, file: str) -> None:
    """Adds the records of FILE, lines of JSON, to DATABASE, which may be new."""
    from ansor.database.database import Database
    from ansor.database.jsonl import import_jsonl

    with Database(database) as target:
        count = import_jsonl(target, file)
    click.echo(f"{count.added} records added, {count.known} known already, {count.bad} unreadable")


@database_commands.command("prune")
@click.argument("database", type=_EXISTING)
@click.option("--best", type=int, metavar="N", help="Keep N programs of each task and target.")
@click.option("--failures", is_flag=True, help="Remove failed measurements.")
@click.option("--other-versions", is_flag=True, help="Remove what other versions measured.")
@click.option("--other-hosts", is_flag=True, help="Remove what other machines measured.")
@click.option("--unreadable", is_flag=True, help="Remove what is damaged or cannot be read.")
@click.option("--dry-run", is_flag=True, help="Only count.")
def prune_command(
    database: str,
    best: int | None,
    failures: bool,
    other_versions: bool,
    other_hosts: bool,
    unreadable: bool,
    dry_run: bool,
) -> None:
    """Removes records of DATABASE, and gives their space back."""
    from ansor.database.database import Database
    from ansor.database.prune import PruneRequest, prune

    request = PruneRequest(best, failures, other_versions, other_hosts, unreadable)
    with Database(database) as opened:
        count = prune(opened, request, dry_run=dry_run)
    verb = "would be removed" if dry_run else "removed"
    click.echo(f"{count.removed} records {verb}, {count.kept} kept")
