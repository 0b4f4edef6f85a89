"""``ansor doctor``: what is right and wrong with this machine for tuning."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.option("--threads", type=click.IntRange(1), help="All cores by default.")
@click.option(
    "--database", type=click.Path(dir_okay=False), metavar="FILE", help="Checks its folder."
)
@click.option(
    "--measure/--no-measure",
    default=True,
    show_default=True,
    help="Measure the speed of the cores and the memory, in ten to twenty seconds.",
)
@click.option("--json", "file", type=click.Path(dir_okay=False), metavar="FILE", help="Report.")
@click.pass_context
def doctor(
    context: click.Context,
    threads: int | None,
    database: str | None,
    measure: bool,
    file: str | None,
) -> None:
    """Shows what is right and wrong with this machine, and what to do.

    The exit status is 1 if something makes results wrong or slow.
    """
    from ansor.cli.results import write_text
    from ansor.diagnosis.doctor import doctor as examine

    report = examine(threads=threads, database=database, measure=measure)
    click.echo(report)
    if file is not None:
        write_text("json", Path(file), f"{json.dumps(report.to_json(), indent=1)}\n")
    context.exit(0 if report.is_right else 1)
