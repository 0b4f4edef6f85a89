"""Measures programs of many operators, on which the constants of the draft are fitted.

``python -m benchmarks.draft_measurements --minutes 25 --out FILE``

Files in ``benchmarks/measured_drafts``, named ``KIND.json.xz``, take part in the fit. Half of the
programs of an operator are random. The others are chosen by the draft or by a short search, because
random programs do not show where the draft is too optimistic.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import click
import numpy as np

from ansor.annotate.sample import sample
from ansor.config import FULL, EvolutionConfig
from ansor.cost_model.model import CostModel
from ansor.evolve.evolution import evolve
from ansor.measure.local_device import LocalDevice
from ansor.program.sketch import Population, Sketch, concatenate
from ansor.targets.cpu.detect import detect
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.targets.host.threads import available_cores
from ansor.targets.target import resolve_target, target_text
from ansor.task import Task
from benchmarks.draft_data import MeasuredSketch, Measurements, lower_of, read, write
from benchmarks.draft_definitions import DEFINITIONS, sketches_of, task_of
from benchmarks.environment import commit, versions
from benchmarks.measured_programs import Programs, draw, settle

_PROGRAMS = 200  # of a definition, at most
_SAMPLED = 2000  # programs from which the draft chooses
_CHUNK = 16  # programs of a definition that are timed at a time
_SETTLING_SHARE = 0.2  # of the time, in which the fastest programs are timed again
_ROUNDS = 3  # times that each program is timed, if there is time; the median counts
_TURNS = 3  # turns in which the fastest programs are compared
_SEARCH = EvolutionConfig(population=128, generations=4)


@dataclass(frozen=True, eq=False)
class _Chosen:
    """One program, as a population, and whether it is preferred, see `MeasuredSketch`."""

    population: Population
    preferred: bool


@dataclass(frozen=True, eq=False)
class _Course:
    """The programs of one definition in random order, and the seconds of each in every round."""

    task: Task
    chosen: list[_Chosen]
    times: list[list[float]]


@click.command()
@click.option("--minutes", type=float, default=25.0, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE")
@click.option("--definitions", help="Separated by commas; all by default.")
@click.option("--kind", help='Kind of the processor; of LLVM\'s name by default ("zen4").')
@click.option("--threads", type=int, help="All cores by default.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--with",
    "earlier",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="An earlier run of the same programs; the lower times count.",
)
def main(
    minutes: float,
    out: Path,
    definitions: str | None,
    kind: str | None,
    threads: int | None,
    seed: int,
    earlier: Path | None,
) -> None:
    """Times programs of all definitions in turns until the time is up, and writes them."""
    start = time.monotonic()
    cores = threads or available_cores()
    target = resolve_target("native")
    hardware = detect(target, cores)
    text = target_text(target, cores)
    names = definitions.split(",") if definitions else list(DEFINITIONS)
    model = CostModel(hardware, CPU_SEARCH, FULL.cost_model, FULL.sketch, seed)
    with LocalDevice(text, cores, FULL.measure) as device:
        device.start()
        courses = {n: _course(n, text, hardware, model, seed) for n in names}
        print(f"programs chosen after {time.monotonic() - start:.0f} s", flush=True)
        _time(courses, device, start + 60 * minutes * (1 - _SETTLING_SHARE))
        settled = {n: _settled(c, model, device) for n, c in courses.items()}
    about = {
        "target": text,
        "threads": cores,
        "versions": versions(),
        "commit": commit(),
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "seed": seed,
    }
    kind = kind or str(target.attrs["mcpu"]).replace("znver", "zen")
    measured = Measurements(kind, hardware, about, settled)
    write(measured if earlier is None else lower_of(measured, read(earlier)), out)
    total = sum(len(part.latency_s) for parts in settled.values() for part in parts)
    print(f"{total} programs in {time.monotonic() - start:.0f} s")


def _course(name: str, target: str, hardware: Hardware, model: CostModel, seed: int) -> _Course:
    """Chooses the programs of a definition."""
    rng = np.random.default_rng(seed)
    task = task_of(name, target)
    sketches = sketches_of(task, hardware, FULL.sketch)
    seen: set[bytes] = set()
    random = draw(sketches, model, _PROGRAMS // 2, rng)
    parts = [_Chosen(p, False) for p in _single(random, model, seen)]
    parts += [_Chosen(p, True) for p in _single(_preferred(sketches, model, rng), model, seen)]
    order = rng.permutation(len(parts))
    return _Course(task, [parts[i] for i in order], [[] for _ in parts])


def _single(
    populations: Sequence[Population], model: CostModel, seen: set[bytes]
) -> list[Population]:
    """Populations of one program each, without those that are `seen`."""
    found = []
    for population in populations:
        signatures = model.estimate(population, with_features=False).signature
        for row in range(len(population)):
            signature = population.sketch.name.encode() + signatures[row].tobytes()
            if signature not in seen:
                seen.add(signature)
                found.append(population.take([row]))
    return found


def _preferred(
    sketches: Sequence[Sketch], model: CostModel, rng: np.random.Generator
) -> list[Population]:
    """Half of the programs are the best of a large sample. The other half is spread over the result
    of a short search."""
    each = max(_SAMPLED // len(sketches), 1)
    sampled = [sample(sketch, each, rng) for sketch in sketches]
    bred = [evolve(p, model.score, rng, _SEARCH)[0] for p in sampled]
    quarter = _PROGRAMS // 4
    return [*_best(sampled, model, quarter, 1), *_best(bred, model, quarter, 4)]


def _best(
    populations: Sequence[Population], model: CostModel, count: int, step: int
) -> list[Population]:
    """Up to `count` legal programs with the best scores, each `step`-th of them."""
    scores = [model.score(p) for p in populations]
    together = np.concatenate(scores)
    owner = np.concatenate([np.full(len(s), i) for i, s in enumerate(scores)])
    row = np.concatenate([np.arange(len(s)) for s in scores])
    order = np.argsort(-together, kind="stable")[: count * step : step]
    order = order[np.isfinite(together[order])]
    rows = [row[order[owner[order] == i]] for i in range(len(populations))]
    return [p.take(own) for p, own in zip(populations, rows, strict=True) if len(own)]


def _time(courses: Mapping[str, _Course], device: LocalDevice, end: float) -> None:
    """Times some programs of each definition in turns, all of them in each round, until the time
    is up."""
    for number in range(_ROUNDS):
        for start in range(0, _PROGRAMS, _CHUNK):
            for course in courses.values():
                if time.monotonic() > end:
                    return
                _time_some(course, slice(start, start + _CHUNK), device)
            print(f"round {number + 1}: {start + _CHUNK} programs of each", flush=True)


def _time_some(course: _Course, part: slice, device: LocalDevice) -> None:
    """Times programs of one definition once."""
    programs = [chosen.population.program(0) for chosen in course.chosen[part]]
    if not programs:
        return
    timed = device.measure(course.task, programs, None)
    for times, measurement in zip(course.times[part], timed, strict=True):
        times.append(math.nan if measurement.latency_s is None else measurement.latency_s)


def _settled(course: _Course, model: CostModel, device: LocalDevice) -> list[MeasuredSketch]:
    """The timed programs, sketch by sketch; the fastest are timed once more, in turns."""
    groups: dict[str, list[tuple[_Chosen, float]]] = {}
    for chosen, times in zip(course.chosen, course.times, strict=True):
        latency_s = float(np.median(times or [math.nan]))  # not a number where a round failed
        if math.isfinite(latency_s):
            groups.setdefault(chosen.population.sketch.name, []).append((chosen, latency_s))
    own = [pair for group in groups.values() for pair in group]
    found = Programs(
        course.task.key,
        tuple(concatenate(c.population for c, _ in group) for group in groups.values()),
        np.asarray([latency_s for _, latency_s in own]),
    )
    again = settle(course.task, found, model, device, _TURNS)
    if len(again) != len(found):  # a program failed the second time; the first times stay
        again = found
    preferred = np.asarray([chosen.preferred for chosen, _ in own])
    return [
        MeasuredSketch(population, again.latency_s[rows], preferred[rows])
        for population, rows in again.parts()
    ]


if __name__ == "__main__":
    main()
