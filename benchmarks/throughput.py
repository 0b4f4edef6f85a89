"""Throughput of the parts of the search: programs per second, on one core.

``python -m benchmarks.throughput --json FILE``
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

import click
import numpy as np

from ansor.annotate.complete import complete
from ansor.annotate.sample import sample
from ansor.config import FULL
from ansor.cost_model.model import CostModel
from ansor.evolve.evolution import evolve
from ansor.features.extract import extract
from ansor.features.legality import legal
from ansor.features.profile import profile
from ansor.lowering.lower import lower
from ansor.measure.local_device import LocalDevice
from ansor.measure.result import Measurement
from ansor.program.nest import build_nest
from ansor.program.program import Program
from ansor.program.sketch import Population, Sketch
from ansor.report.formatting import align
from ansor.run.prepare import prepare_network
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.targets.build import compile_function
from ansor.targets.cpu.detect import detect
from ansor.targets.cpu.draft.draft import draft
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.targets.host.threads import available_cores
from ansor.targets.target import resolve_target, target_text
from ansor.task import Task
from ansor.workloads import build as build_workload
from benchmarks.environment import environment, write
from benchmarks.surrogate_fitting import runs_s

_RECORDS = 64  # measurements that the model is trained on, made up


@dataclass(frozen=True)
class Row:
    """One part of the search: programs per second, median over repeats, and their number."""

    part: str
    programs_per_s: float
    programs: int


@contextmanager
def one_core() -> Iterator[None]:
    """Keeps this process on one processor."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def rate(part: str, programs: int, call: Callable[[], object], repeats: int) -> Row:
    """Times a call that handles `programs` programs; the first call does not count."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return Row(part, programs / statistics.median(times[1:]), programs)


def search_rates(sketch: Sketch, hardware: Hardware, programs: int, repeats: int) -> list[Row]:
    """The parts that run in NumPy and XGBoost, and all of them together."""
    rng = np.random.default_rng(0)
    population = sample(sketch, programs, rng)
    nest = build_nest(population)
    profiles = profile(nest)
    model = trained(sketch, hardware)
    config = replace(FULL.evolution, settled=FULL.evolution.generations)  # all of them
    bred = config.population * config.generations + len(population)
    fresh = CostModel(hardware, CPU_SEARCH, FULL.cost_model, FULL.sketch)
    parts: list[tuple[str, int, Callable[[], object]]] = [
        ("sampling", programs, lambda: sample(sketch, programs, rng)),
        ("loop nest", programs, lambda: build_nest(population)),
        ("profile", programs, lambda: profile(nest)),
        ("draft", programs, lambda: draft(profiles, hardware)),
        ("features", programs, lambda: extract(population, profiles)),
        ("legality", programs, lambda: legal(nest, hardware, FULL.sketch)),
        ("scoring: draft alone", programs, lambda: fresh.score(population)),
        (
            "scoring: features and draft",
            programs,
            lambda: fresh.estimate(population, with_features=True),
        ),
        ("scoring: features, draft, GBDT", programs, lambda: model.score(population)),
        ("evolution", bred, lambda: evolve(population, model.score, rng, config)),
    ]
    return [rate(name, count, call, repeats) for name, count, call in parts]


def trained(sketch: Sketch, hardware: Hardware) -> CostModel:
    """A model that has learned from made-up latencies: the speed is that of a real one."""
    rng = np.random.default_rng(1)
    model = CostModel(hardware, CPU_SEARCH, FULL.cost_model, FULL.sketch)
    latencies = (1e-3 * rng.lognormal(size=_RECORDS)).tolist()
    model.add("made-up", sample(sketch, _RECORDS, rng), latencies)
    model.fit()
    return model


def machine_rates(task: Task, best: Population, threads: int) -> list[Row]:
    """Lowering and building here, and measuring as the search does it, on all cores."""
    programs = [best.program(row) for row in range(len(best))]
    lowered = [lower(task.func, program) for program in programs]
    count = len(programs)
    with LocalDevice(task.target, threads) as device:
        device.measure(task, programs[:1], None)  # starts the workers
        return [
            rate("lowering", count, lambda: [lower(task.func, p) for p in programs], 1),
            rate("building", count, lambda: [compile_function(f, task.target) for f in lowered], 1),
            rate("measuring", count, lambda: device.measure(task, programs, None), 1),
        ]


def trial_rate(task: Task, programs: Sequence[Program], threads: int) -> Row:
    """Trials per second without their builds and their timed runs: messages, arguments, the known
    work that shows the speed of the machine, and pauses beside other work. On one worker."""
    with LocalDevice(task.target, threads, replace(FULL.measure, workers=1)) as device:
        device.measure(task, programs[:1], None)  # starts the worker
        start = time.perf_counter()
        results = device.measure(task, programs, None)
        taken_s = time.perf_counter() - start
    rest_s = taken_s - work_s(results)
    return Row("a trial beyond its build and its runs", len(programs) / rest_s, len(programs))


def work_s(results: Sequence[Measurement]) -> float:
    """Seconds of the builds and timed runs of programs that were measured one after the other."""
    total_s, best_s = 0.0, math.inf
    for result in results:
        total_s += result.build_s
        if result.latency_s is not None:
            total_s += runs_s(result.latency_s, best_s, FULL.measure)
            best_s = min(best_s, result.latency_s)
    return total_s


def fittest(sketch: Sketch, hardware: Hardware, count: int) -> Population:
    """The programs that the draft prefers, as the search would measure them."""
    model = CostModel(hardware, CPU_SEARCH, FULL.cost_model, FULL.sketch)
    drawn = sample(sketch, FULL.evolution.initial, np.random.default_rng(0))
    return drawn.take(np.argsort(-model.score(drawn), kind="stable")[:count])


@click.command()
@click.option("--programs", type=click.IntRange(1), default=4096, show_default=True)
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True)
@click.option("--measured", type=click.IntRange(0), default=16, show_default=True)
@click.option("--json", "file", metavar="FILE", help="Where results are written.")
def main(programs: int, repeats: int, measured: int, file: str | None) -> None:
    """Times the parts of the search on conv2d, NHWC, 56x56x64 to 64, 3x3."""
    threads = available_cores()
    target = resolve_target("native")
    hardware = detect(target, threads)
    operator = list(build_workload("conv2d").tensors)
    task = prepare_network(operator, target, target_text(target, threads)).tasks[0]
    sketch = complete(
        generate(task.dag, hardware, CPU_RULES, FULL.sketch)[0], hardware, FULL.sketch
    )
    with one_core():
        rows = search_rates(sketch, hardware, programs, repeats)
    if measured:
        best = fittest(sketch, hardware, measured)
        rows += machine_rates(task, best, threads)
        rows.append(trial_rate(task, [best.program(row) for row in range(len(best))], threads))
    print(table(rows))
    about = environment(threads, sketch=sketch.name)
    write(file, {"environment": about, "results": [asdict(row) for row in rows]})


def table(rows: list[Row]) -> str:
    """For people."""
    cells = [
        (row.part, f"{row.programs_per_s:,.0f}", f"{1e6 / row.programs_per_s:,.1f}") for row in rows
    ]
    return align(("part", "programs/s", "µs each"), cells)


if __name__ == "__main__":
    main()
