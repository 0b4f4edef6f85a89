"""``ansor show``: records, best programs, tasks, sketches and programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click
import numpy as np

from ansor.cli.model_argument import HELP, parse_model
from ansor.config import FULL
from ansor.database.log import opened_records
from ansor.database.record import Record
from ansor.errors import ArgumentError
from ansor.lowering.trace import left_out, traced
from ansor.program.program import Program
from ansor.program.pseudo_code import show_program, show_sketch
from ansor.program.sketch import Population, Sketch
from ansor.report.database_tables import best_table, records_table
from ansor.report.formatting import align, shorten
from ansor.report.runs_table import runs_table
from ansor.run.prepare import prepare_network
from ansor.run.saved import load
from ansor.targets.host.threads import available_cores
from ansor.targets.registry import backend_of
from ansor.targets.target import resolve_target, target_text
from ansor.task import Task

_FILE = click.Path(exists=True, dir_okay=False)
_TARGET = click.option("--target", default="native", show_default=True)
_THREADS = click.option("--threads", type=int, help="All cores by default.")
_NO_RECORD = "no record for this target"
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
    with opened_records("database", database) as opened:
        click.echo(records_table(opened, task, limit))


@show.command()
@click.argument("database", type=_FILE)
@_TASK
def best(database: str, task: str | None) -> None:
    """Lists the best program of every task in DATABASE, or in a log."""
    with opened_records("database", database) as opened:
        click.echo(best_table(opened, task))


@show.command("runs")
@click.argument("database", type=_FILE)
def list_runs(database: str) -> None:
    """Lists the runs of DATABASE: state, trials, failures by kind, and minutes."""
    with opened_records("database", database) as opened:
        click.echo(runs_table(opened))


@show.command("task", epilog=HELP)
@click.argument("model")
@click.argument("task", required=False)
@_TARGET
@_THREADS
def show_task(model: str, task: str | None, target: str, threads: int | None) -> None:
    """Lists the tasks of MODEL, or shows the stages of those whose name contains TASK."""
    tasks = tasks_of(model, target, threads)
    if task is None:
        rows = [
            (shorten(t.name, 60), t.key[:8], str(t.weight), f"{t.dag.flops / 1e6:.1f}")
            for t in tasks
        ]
        click.echo(align(("task", "key", "calls", "MFLOP"), rows, (0, 1)))
    else:
        click.echo("\n\n".join(f"{t.name}\n{t.dag.show()}" for t in matching_tasks(tasks, task)))


@show.command(epilog=HELP)
@click.argument("model")
@click.argument("task", required=False)
@_TARGET
@_THREADS
def sketches(model: str, task: str | None, target: str, threads: int | None) -> None:
    """Shows the sketches of MODEL's tasks as pseudo-code, with holes for what is searched."""
    for found in matching_tasks(tasks_of(model, target, threads), task):
        for sketch in sketches_of(found, target, threads):
            click.echo(f"{found.name}, sketch {sketch.name}: {sketch.space_size:.2g} programs")
            click.echo(f"{show_sketch(sketch)}\n")


@show.command(epilog=HELP)
@click.argument("model")
@click.argument("database", type=_FILE)
@click.argument("task", required=False)
@_TARGET
@_THREADS
def program(model: str, database: str, task: str | None, target: str, threads: int | None) -> None:
    """Shows the best known programs of MODEL's tasks as pseudo-code."""
    for found, record in _best_records(model, database, task, target, threads):
        text = _program_text(found, record, target, threads) if record else _NO_RECORD
        click.echo(f"{found.name}: {text}\n")


@show.command(epilog=HELP)
@click.argument("model")
@click.argument("database", type=_FILE)
@click.argument("task", required=False)
@_TARGET
@_THREADS
def trace(model: str, database: str, task: str | None, target: str, threads: int | None) -> None:
    """Prints the best known programs of MODEL's tasks as Python, calls of TVM's schedule."""
    for found, record in _best_records(model, database, task, target, threads):
        text = _trace_text(found, record.program) if record else _NO_RECORD
        click.echo(f"# {found.name}\n{text}\n")


@show.command()
@click.argument("network", type=_FILE)
@click.argument("function", required=False)
def source(network: str, function: str | None) -> None:
    """Prints the loops of a FUNCTION of NETWORK, a saved file, in TensorIR."""
    click.echo(load(network).source(function))


@show.command()
@click.argument("network", type=_FILE)
@click.argument("function", required=False)
def assembly(network: str, function: str | None) -> None:
    """Prints the assembly of a FUNCTION of NETWORK, a saved file."""
    click.echo(load(network).assembly(function))


def _best_records(
    model: str, database: str, task: str | None, target: str, threads: int | None
) -> Iterator[tuple[Task, Record | None]]:
    """Each matching task of a model with its fastest record, if there is one."""
    with opened_records("database", database) as opened:
        for found in matching_tasks(tasks_of(model, target, threads), task):
            yield found, next(iter(opened.best(found.key, found.target)), None)


def _trace_text(task: Task, program: Program) -> str:
    """The trace of a program as Python, and what it leaves out."""
    text = "\n".join(traced(task.func, program).as_python())
    absent = ", ".join(left_out(task.func, program))
    return f"{text}\n# left out: {absent}" if absent else text


def _program_text(task: Task, record: Record, target: str, threads: int | None) -> str:
    for sketch in sketches_of(task, target, threads):
        population = _population(sketch, record.program)
        if population is not None:
            latency_us = (record.latency_s or 0.0) * 1e6
            return f"sketch {sketch.name}, {latency_us:.1f} µs\n{show_program(population)}"
    return f"its best program, of sketch {record.program.sketch}, is not in today's space"


def _population(sketch: Sketch, wanted: Program) -> Population | None:
    row = sketch.row_of(wanted)
    return None if row is None else Population(sketch, np.asarray(row)[None])


def tasks_of(model: str, target: str, threads: int | None) -> tuple[Task, ...]:
    """The tasks that tuning `model` would work on."""
    resolved = resolve_target(target)
    text = target_text(resolved, threads or available_cores())
    return prepare_network(parse_model(model), resolved, text).tasks


def matching_tasks(tasks: Sequence[Task], wanted: str | None) -> list[Task]:
    """Tasks whose name or key contains `wanted`.

    Raises:
        ArgumentError: there are none.
    """
    found = [t for t in tasks if wanted is None or wanted in t.name or wanted in t.key]
    if not found:
        raise ArgumentError("task", wanted, f"tasks are {', '.join(t.name for t in tasks)}")
    return found


def sketches_of(task: Task, target: str, threads: int | None) -> list[Sketch]:
    """The complete sketches of a task."""
    resolved = resolve_target(target)
    backend = backend_of(resolved)
    machine = backend.machine.read(resolved, threads or available_cores())
    return backend.search.sketches(task.dag, machine, FULL.sketch)
