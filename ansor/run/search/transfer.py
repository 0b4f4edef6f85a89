"""Data of earlier runs for a search: programs for the first batch, and records for the cost model.

Programs of earlier runs do not count as measured, because another machine or version may have
measured them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ansor.cost_model.model import CostModel
from ansor.database.database import Database
from ansor.database.journal import Journal
from ansor.database.record import Record
from ansor.program.program import Program
from ansor.program.sketch import Population, Sketch
from ansor.task import Task


def best_programs(task: Task, sources: Sequence[Database], count: int) -> list[Program]:
    """The fastest programs of a task that earlier runs measured, `count` of each target."""
    return [
        record.program
        for source in sources
        for target in _targets(source, task)
        for record in source.best(task.key, target, count)
    ]


def similar_programs(task: Task, sources: Sequence[Database | Journal]) -> list[Program]:
    """The fastest program of every other task that earlier runs measured for the target."""
    return [
        record.program
        for source in sources
        for record in source.winners(task.target, besides=task.key)
    ]


def teach(
    model: CostModel, task: Task, sketches: Sequence[Sketch], sources: Sequence[Database]
) -> None:
    """Lets a cost model learn from the records of a task that are in its space.

    The model compares latencies of one source and one target only, so that the speed of another
    machine does not matter.

    Args:
        model: of the search.
        task: of the records.
        sketches: of the task.
        sources: records of earlier runs.
    """
    for number, source in enumerate(sources):
        for target in _targets(source, task):
            done = [r for r in source.records(task.key, target) if r.latency_s is not None]
            for population, latency_s in _populations(sketches, done):
                model.add(f"{task.key} {number} {target}", population, latency_s)


def _targets(source: Database, task: Task) -> list[str]:
    """The target of the task, or else all targets that have records of it."""
    known = source.targets(task.key)
    return [task.target] if task.target in known else known


def _populations(
    sketches: Sequence[Sketch], records: Sequence[Record]
) -> Iterator[tuple[Population, list[float]]]:
    """The programs of each sketch with their latencies in seconds."""
    for sketch in sketches:
        named = [record for record in records if record.program.sketch == sketch.name]
        pairs = [(sketch.row_of(record.program), record.latency_s or 0.0) for record in named]
        rows = [row for row, _ in pairs if row is not None]
        if rows:
            latency_s = [seconds for row, seconds in pairs if row is not None]
            yield Population(sketch, np.stack(rows)), latency_s
