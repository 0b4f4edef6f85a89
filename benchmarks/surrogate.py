"""Measures programs of operators and fits trees to them: the surrogate device of the benchmarks.

``python -m benchmarks.surrogate --ops OPE.0,C2D.2 --programs 2000 --minutes 9 --out DIR``

Measurements are kept in a database (`--database`), so the command may be stopped and repeated until
all programs are measured. The machine must be idle. With ``--minutes 0`` it only fits.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

import click

from ansor.config import FULL
from ansor.database.database import Database
from ansor.measure.local_device import LocalDevice
from ansor.report.formatting import align
from ansor.targets.cpu.detect import detect
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.targets.host.threads import available_cores
from ansor.targets.target import resolve_target
from ansor.task import Task
from benchmarks.environment import environment
from benchmarks.spaces import task_of
from benchmarks.surrogate_fitting import fitted, sample_of
from benchmarks.surrogate_measuring import Measuring
from benchmarks.surrogate_model import FOLDER, Quality, Surrogate, SurrogateError, file_of, write

_HEADER = ("op", *(field.name.replace("_", " ") for field in fields(Quality)))


@click.command()
@click.option("--ops", required=True, help="Separated by commas; measured one after the other.")
@click.option("--programs", type=click.IntRange(1), default=2000, show_default=True, help="Per op.")
@click.option("--minutes", type=click.FloatRange(0), default=9.0, show_default=True)
@click.option(
    "--database",
    type=click.Path(path_type=Path),
    default=Path("build/surrogates.sqlite"),
    show_default=True,
    help="Measurements so far, read and extended.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), default=FOLDER, metavar="DIR", help="For the trees."
)
@click.option(
    "--run-timeout",
    "timeout_s",
    type=click.FloatRange(0, min_open=True),
    default=FULL.measure.run_timeout_s,
    show_default=True,
    help="Seconds of a run, after which a program fails.",
)
@click.option("--threads", type=int, help="All cores by default.")
def main(
    ops: str,
    programs: int,
    minutes: float,
    database: Path,
    out: Path,
    timeout_s: float,
    threads: int | None,
) -> None:
    """Measures until the time is up, fits every operator and reports on held-out programs."""
    deadline_s = time.monotonic() + 60 * minutes
    cores = threads or available_cores()
    tasks = {op: task_of(op, cores) for op in ops.split(",")}
    hardware = detect(resolve_target("native"), cores)
    database.parent.mkdir(parents=True, exist_ok=True)
    with Database(database) as records:
        if minutes:
            config = replace(FULL.measure, run_timeout_s=timeout_s)
            target = next(iter(tasks.values())).target
            with LocalDevice(target, cores, config) as device:
                _measure(tasks, Measuring(device, hardware, records, deadline_s), programs)
        made = [
            _fitted(op, task, hardware, records, cores, timeout_s) for op, task in tasks.items()
        ]
    found = [surrogate for surrogate in made if surrogate is not None]
    for surrogate in found:
        write(surrogate, file_of(surrogate.op, out))
    print(f"\n{table({s.op: s.quality for s in found})}")


def _measure(tasks: Mapping[str, Task], measuring: Measuring, programs: int) -> None:
    """Measures operator by operator, until the time is up."""
    for op, task in tasks.items():
        before, began_s = measuring.count(task), time.monotonic()
        count = measuring.measure(task, programs)
        rate = (count - before) / (time.monotonic() - began_s)
        print(f"{op}: {count} of {programs} programs, {rate:.2f} a second", flush=True)


def _fitted(
    op: str, task: Task, hardware: Hardware, records: Database, cores: int, timeout_s: float
) -> Surrogate | None:
    """The surrogate of the records of an operator; None where there are too few."""
    sketches = CPU_SEARCH.sketches(task.dag, hardware, FULL.sketch)
    sample = sample_of(sketches, records.records(task.key, task.target))
    failures = {kind.value: count for kind, count in sample.errors.items()}
    about = environment(cores, programs=len(sample.inputs), failures=failures)
    try:
        return fitted(op, task, sample, about, timeout_s)
    except SurrogateError as error:
        print(error)
        return None


def table(rows: Mapping[str, Quality]) -> str:
    """The quality of all surrogates, for people."""
    cells = [
        (op, *(_text(getattr(quality, field.name)) for field in fields(Quality)))
        for op, quality in rows.items()
    ]
    return align(_HEADER, cells, (0,))


def _text(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"


if __name__ == "__main__":
    main()
