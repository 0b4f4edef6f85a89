"""``ansor explain``: why the winner of a task is fast, and what limits it."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ansor.cli.choices import MODEL_HELP


@click.command(epilog=MODEL_HELP)
@click.argument("model")
@click.argument("database", type=click.Path(exists=True, dir_okay=False))
@click.argument("task", required=False)
@click.option("--target", default="native", show_default=True, help="As for `ansor tune`.")
@click.option("--threads", type=click.IntRange(1), help="All cores by default.")
@click.option("--json", "file", type=click.Path(dir_okay=False), metavar="FILE", help="Figures.")
def explain(
    model: str,
    database: str,
    task: str | None,
    target: str,
    threads: int | None,
    file: str | None,
) -> None:
    """Explains the winner of TASK: what bounds it, and what was tried.

    DATABASE, or a log, has the measurements of MODEL. TASK is the name of a function, a part of
    one name, or a part of its key. A model with one function needs none.
    """
    from ansor.cli.explained import explained
    from ansor.cli.results import write_text

    found = explained(model, database, task, target, threads)
    click.echo(found)
    if file is not None:
        write_text("json", Path(file), f"{json.dumps(found.to_json(), indent=1)}\n")
