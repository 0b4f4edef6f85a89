"""``ansor show``: records, best programs, tasks, sketches and programs."""

from __future__ import annotations

import click

from ansor.cli.choices import MODEL_HELP

_FILE = click.Path(exists=True, dir_okay=False)
_TARGET = click.option("--target", default="native", show_default=True, help="As for `ansor tune`.")
_THREADS = click.option("--threads", type=int, help="All cores by default.")
_TASK = click.option("--task", help="Part of a task's name or key.")


@click.group()
def show() -> None:
    """Shows records, tasks, sketches and programs."""


@show.command("records")
@click.argument("database", type=_FILE)
@_TASK
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Newest.")
def list_records(database: str, task: str | None, limit: int) -> None:
    """Lists the newest measurements of DATABASE, or of a log."""
    from ansor.database.log import opened_records
    from ansor.report.database_tables import records_table

    with opened_records("database", database) as opened:
        click.echo(records_table(opened, task, limit))


@show.command()
@click.argument("database", type=_FILE)
@_TASK
def best(database: str, task: str | None) -> None:
    """Lists the best program of every task in DATABASE, or in a log."""
    from ansor.database.log import opened_records
    from ansor.report.database_tables import best_table

    with opened_records("database", database) as opened:
        click.echo(best_table(opened, task))


@show.command("runs")
@click.argument("database", type=_FILE)
def list_runs(database: str) -> None:
    """Lists the runs of DATABASE: state, trials, failures by kind, and minutes."""
    from ansor.database.log import opened_records
    from ansor.report.runs_table import runs_table

    with opened_records("database", database) as opened:
        click.echo(runs_table(opened))


@show.command("models")
def list_models() -> None:
    """Lists the built-in networks and operators."""
    from ansor import workloads
    from ansor.models import model_names

    click.echo(f"networks: {', '.join(model_names())}")
    click.echo(f"operators: {', '.join(workloads.names())}")


@show.command("task", epilog=MODEL_HELP)
@click.argument("model")
@click.argument("task", required=False)
@_TARGET
@_THREADS
def show_task(model: str, task: str | None, target: str, threads: int | None) -> None:
    """Lists the tasks of MODEL, or shows the stages of those whose name contains TASK."""
    from ansor.cli.shown import matching_tasks, task_table, tasks_of

    tasks = tasks_of(model, target, threads)
    if task is None:
        click.echo(task_table(tasks))
    else:
        click.echo("\n\n".join(f"{t.name}\n{t.dag.show()}" for t in matching_tasks(tasks, task)))


@show.command(epilog=MODEL_HELP)
@click.argument("model")
@click.argument("task", required=False)
@_TARGET
@_THREADS
def sketches(model: str, task: str | None, target: str, threads: int | None) -> None:
    """Shows the sketches of MODEL's tasks as pseudo-code, with holes for what is searched."""
    from ansor.cli.shown import matching_tasks, sketches_of, tasks_of
    from ansor.program.pseudo_code import show_sketch

    for found in matching_tasks(tasks_of(model, target, threads), task):
        for sketch in sketches_of(found, target, threads):
            click.echo(f"{found.name}, sketch {sketch.name}: {sketch.space_size:.2g} programs")
            click.echo(f"{show_sketch(sketch)}\n")


@show.command(epilog=MODEL_HELP)
@click.argument("model")
@click.argument("database", type=_FILE)
@click.argument("task", required=False)
@_TARGET
@_THREADS
def program(model: str, database: str, task: str | None, target: str, threads: int | None) -> None:
    """Shows the best known programs of MODEL's tasks as pseudo-code."""
    from ansor.cli.shown import NO_RECORD, best_records, program_text

    for found, record in best_records(model, database, task, target, threads):
        text = program_text(found, record, target, threads) if record else NO_RECORD
        click.echo(f"{found.name}: {text}\n")


@show.command(epilog=MODEL_HELP)
@click.argument("model")
@click.argument("database", type=_FILE)
@click.argument("task", required=False)
@_TARGET
@_THREADS
def trace(model: str, database: str, task: str | None, target: str, threads: int | None) -> None:
    """Prints the best known programs of MODEL's tasks as Python, calls of TVM's schedule."""
    from ansor.cli.shown import NO_RECORD, best_records, trace_text

    for found, record in best_records(model, database, task, target, threads):
        text = trace_text(found, record.program) if record else NO_RECORD
        click.echo(f"# {found.name}\n{text}\n")


@show.command()
@click.argument("network", type=_FILE)
@click.argument("function", required=False)
def source(network: str, function: str | None) -> None:
    """Prints the loops of a FUNCTION of NETWORK, a saved file, in TensorIR."""
    from ansor.run.tuned.saved import load

    click.echo(load(network).source(function))


@show.command()
@click.argument("network", type=_FILE)
@click.argument("function", required=False)
def assembly(network: str, function: str | None) -> None:
    """Prints the assembly of a FUNCTION of NETWORK, a saved file."""
    from ansor.run.tuned.saved import load

    click.echo(load(network).assembly(function))
