"""How much slower a network is beside busy processes, and ONNX Runtime with it.

``python -m benchmarks.busy --minutes 2 --json FILE``, or ``--saved FILE.ansor`` for a network that
is tuned already. A busy process computes without end; the machine should have no other work.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import click

from ansor.calls import auto_schedule
from ansor.compare.case import Case
from ansor.compare.child import EXPORT
from ansor.compare.rounds import ENTRY
from ansor.compare.system_process import Child, ChildError, run_child
from ansor.compare.systems import SYSTEMS
from ansor.compare.turns import take_turns
from ansor.report.formatting import align
from ansor.targets.host.threads import available_cores
from benchmarks.environment import environment, write

_SYSTEMS = ("ansor", "onnxruntime")
_BUSY = (0, 1, 2)  # processes
_SPIN = "while True: pass"
_SETTLE_S = 0.5  # until the scheduler has placed them
_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Row:
    """Median latency of a system beside busy processes, and its ratio to the quiet one."""

    system: str
    busy: int
    latency_ms: float
    ratio: float


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Processes that compute inside the context."""
    processes = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(count)]
    try:
        time.sleep(_SETTLE_S)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure(case: Case, systems: Sequence[str], rounds: int) -> list[Row]:
    """Times the systems in turns, beside none, one and two busy processes.

    Raises:
        ChildError: one of them cannot be run.
    """
    rows: list[Row] = []
    quiet_ms: dict[str, float] = {}
    for busy in _BUSY:
        with busy_processes(busy):
            outcome = take_turns(lambda name: _start(case, name), systems, rounds, case.seconds)
        for name, reason in outcome.missing.items():
            raise ChildError(f"{name}: {reason}")
        for name in outcome.answers:
            turns = [latency for turns in outcome.latencies_s(name) for latency in turns]
            latency_ms = statistics.median(turns) * 1e3
            ratio = latency_ms / quiet_ms.setdefault(name, latency_ms)
            rows.append(Row(name, busy, latency_ms, ratio))
    return rows


def _start(case: Case, system: str) -> Child:
    return Child([*ENTRY, system, json.dumps(asdict(case))], case.threads, _TIMEOUT_S)


def prepare(case: Case, saved: str | None, minutes: float) -> list[str]:
    """Puts the networks into the case's folder; the systems that can run."""
    if saved is None:
        auto_schedule(case.model, minutes=minutes, threads=case.threads).save(case.tuned)
    else:
        case.tuned.symlink_to(os.path.abspath(saved))
    systems = [name for name in _SYSTEMS if not SYSTEMS[name].absence(case)]
    if any(SYSTEMS[name].exported for name in systems):
        run_child([*ENTRY, EXPORT, json.dumps(asdict(case))], case.threads, _TIMEOUT_S)
    return systems


def table(rows: Sequence[Row]) -> str:
    """The rows for people."""
    cells = [
        (row.system, str(row.busy), f"{row.latency_ms:.2f}", f"{row.ratio:.2f}") for row in rows
    ]
    return align(("system", "busy", "ms", "of quiet"), cells, (0,))


@click.command()
@click.option("--model", default="resnet18", show_default=True)
@click.option("--saved", metavar="FILE", help="A tuned network of that model.")
@click.option("--minutes", type=float, default=2.0, show_default=True, help="Else, for tuning.")
@click.option("--threads", type=int, help="All cores by default.")
@click.option("--rounds", type=click.IntRange(1), default=2, show_default=True)
@click.option("--json", "file", metavar="FILE", help="For the result.")
def main(
    model: str,
    saved: str | None,
    minutes: float,
    threads: int | None,
    rounds: int,
    file: str | None,
) -> None:
    """Times a network beside none, one and two busy processes."""
    cores = threads or available_cores()
    about = environment(cores, model=model, rounds=rounds, saved=saved, minutes=minutes)
    with tempfile.TemporaryDirectory() as folder:
        case = Case(model, folder, cores)
        rows = measure(case, prepare(case, saved, minutes), rounds)
    click.echo(table(rows))
    write(file, {"environment": about, "results": [asdict(row) for row in rows]})


if __name__ == "__main__":
    main()
