"""``ansor explain``: why the winner of a task is fast, and what limits it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ansor.cli.model_argument import HELP
from ansor.cli.show import tasks_of
from ansor.database.log import opened_records
from ansor.errors import ArgumentError
from ansor.explain.choice import chosen
from ansor.explain.recorded import explain_record
from ansor.targets.host.threads import available_cores
from ansor.targets.target import resolve_target
from ansor.task import Task


@click.command(epilog=HELP)
@click.argument("model")
@click.argument("database", type=click.Path(exists=True, dir_okay=False))
@click.argument("task", required=False)
@click.option("--target", default="native", show_default=True, help="Of the programs.")
@click.option("--threads", type=int, help="Of the programs; all cores by default.")
@click.option("--json", "file", type=click.Path(dir_okay=False), help="Write the figures to FILE.")
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
    with opened_records("database", database) as records:
        variants = _variants(tasks_of(model, target, threads), task)
        cores = threads or available_cores()
        explanation = explain_record(variants, records, resolve_target(target), cores)
    click.echo(str(explanation))
    if file is not None:
        _write(file, explanation.to_json())


def _variants(tasks: Sequence[Task], wanted: str | None) -> Sequence[Task]:
    """All variants of the function that a user names, or the one variant with that name."""
    by_name = {task.name: task for task in tasks if task.original is not None}
    if wanted in by_name:
        return [by_name[wanted]]
    functions: dict[str, list[Task]] = {}
    for task in tasks:
        functions.setdefault(task.group, []).append(task)
    keys = {name: " ".join(each.key for each in own) for name, own in functions.items()}
    return chosen(functions, wanted, keys)


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise ArgumentError("json", file, f"cannot be written: {error.strerror}") from error
