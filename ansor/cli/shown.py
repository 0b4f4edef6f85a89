"""Tasks, sketches and programs of a model, for ``ansor show``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ansor.cli.model_argument import parse_model
from ansor.config import FULL
from ansor.database.log import opened_records
from ansor.database.record import Record
from ansor.errors import ArgumentError
from ansor.lowering.trace import left_out, traced
from ansor.program.program import Program
from ansor.program.pseudo_code import show_program
from ansor.program.sketch import Population, Sketch
from ansor.report.formatting import align, shorten
from ansor.run.prepare import prepare_network
from ansor.targets.host.threads import available_cores
from ansor.targets.registry import backend_of
from ansor.targets.target import resolve_target, target_text
from ansor.task import Task

NO_RECORD = "no record for this target"


def task_table(tasks: Sequence[Task]) -> str:
    """The tasks of a model with their keys, calls and operations."""
    rows = [
        (shorten(t.name, 60), t.key[:8], str(t.weight), f"{t.dag.flops / 1e6:.1f}") for t in tasks
    ]
    return align(("task", "key", "calls", "MFLOP"), rows, (0, 1))


def best_records(
    model: str, database: str, task: str | None, target: str, threads: int | None
) -> Iterator[tuple[Task, Record | None]]:
    """Each matching task of a model with its fastest record, if there is one."""
    with opened_records("database", database) as opened:
        for found in matching_tasks(tasks_of(model, target, threads), task):
            yield found, next(iter(opened.best(found.key, found.target)), None)


def trace_text(task: Task, program: Program) -> str:
    """The trace of a program as Python, and what it leaves out."""
    text = "\n".join(traced(task.func, program).as_python())
    absent = ", ".join(left_out(task.func, program))
    return f"{text}\n# left out: {absent}" if absent else text


def program_text(task: Task, record: Record, target: str, threads: int | None) -> str:
    """A recorded program as pseudo-code, with its sketch and its latency."""
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
        raise ArgumentError("task", wanted, f"name one of {', '.join(t.name for t in tasks)}")
    return found


def sketches_of(task: Task, target: str, threads: int | None) -> list[Sketch]:
    """The complete sketches of a task."""
    resolved = resolve_target(target)
    backend = backend_of(resolved)
    machine = backend.machine.read(resolved, threads or available_cores())
    return backend.search.sketches(task.dag, machine, FULL.sketch)
