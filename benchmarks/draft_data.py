"""Files of measured programs, on which the constants of the draft are fitted.

A file belongs to one processor. It is JSON, compressed with LZMA. It holds the parameters of the
machine, so the fit runs on any computer, and for each definition the steps of each sketch once,
with the values of every program.
"""

from __future__ import annotations

import dataclasses
import json
import lzma
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ansor.config import FULL, SketchConfig
from ansor.errors import AnsorError
from ansor.program.codec import decode, encode
from ansor.program.program import Program
from ansor.program.sketch import Population, Sketch
from ansor.targets.cpu.machine import Hardware
from benchmarks.draft_definitions import DEFINITIONS, sketches_of, task_of

FOLDER = Path(__file__).parent / "measured_drafts"
VERSION = 1
SUFFIX = ".json.xz"
_TARGET = "llvm"  # of tasks that are read and not measured


class DataError(AnsorError):
    """A file of measurements cannot be used."""


@dataclass(frozen=True, eq=False)
class MeasuredSketch:
    """Measured programs of one sketch.

    Attributes:
        population: the programs.
        latency_s: `[P]`: seconds of each.
        preferred: `[P]`: whether the draft or a search chose the program; the others are random.
    """

    population: Population
    latency_s: npt.NDArray[np.float64]
    preferred: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Measurements:
    """All measurements of one processor.

    Attributes:
        kind: short name of the processor's kind, such as "zen4".
        hardware: its parameters.
        about: versions, threads and time of the measurements.
        definitions: measured programs of each definition, sketch by sketch.
    """

    kind: str
    hardware: Hardware
    about: Mapping[str, Any]
    definitions: Mapping[str, Sequence[MeasuredSketch]]


def write(measurements: Measurements, file: Path) -> None:
    """Writes a file of measurements."""
    document = {
        "version": VERSION,
        "kind": measurements.kind,
        "hardware": dataclasses.asdict(measurements.hardware),
        "about": dict(measurements.about),
        "definitions": {
            name: [_encoded(part) for part in parts]
            for name, parts in measurements.definitions.items()
        },
    }
    text = json.dumps(document, separators=(",", ":"))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(lzma.compress(text.encode(), preset=9))


def _encoded(part: MeasuredSketch) -> dict[str, Any]:
    """A sketch's programs as JSON values."""
    population = part.population
    first = json.loads(encode(population.program(0)))
    holes = [decision.name for decision in population.sketch.decisions]
    return {
        "steps": first["steps"],
        "values": {hole: population.values(hole).tolist() for hole in holes},
        "latency_s": [float(f"{time:.5g}") for time in part.latency_s],
        "preferred": [int(chosen) for chosen in part.preferred],
    }


def read(
    file: Path, config: SketchConfig = FULL.sketch, names: Collection[str] | None = None
) -> Measurements:
    """Reads a file, or some of its definitions. The sketches are generated for the machine of the
    file.

    Raises:
        DataError: the file is broken, or programs or definitions no longer exist.
    """
    try:
        document = json.loads(lzma.decompress(file.read_bytes()))
        if document["version"] != VERSION:
            raise DataError(f"{file}: version {document['version']!r} is not {VERSION}")
        hardware = _hardware(document["hardware"])
        kind, about = str(document["kind"]), dict(document["about"])
        stored = dict(document["definitions"])
        absent = sorted(set(names or ()) - stored.keys())
        if absent:
            raise DataError(f"{file}: no measurements of {', '.join(absent)}")
        found, missing = {}, {}
        for name, parts in stored.items():
            if names is not None and name not in names:
                continue
            found[name], lost = _restored(name, parts, hardware, config)
            if lost:
                missing[name] = lost
    except (OSError, lzma.LZMAError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file}: not a file of measurements: {error!r}") from error
    if missing:
        each = ", ".join(f"{name} {count}" for name, count in missing.items())
        total = sum(missing.values())
        raise DataError(
            f"{file}: {total} programs no longer exist in the sketches ({each}); "
            "measure again with python -m benchmarks.draft_measurements"
        )
    return Measurements(kind, hardware, about, found)


def lower_of(first: Measurements, second: Measurements) -> Measurements:
    """Two runs of the same programs on one processor, with the lower time of each program. Other
    work on the machine only adds time.

    Raises:
        DataError: the programs differ.
    """
    if first.kind != second.kind or first.definitions.keys() != second.definitions.keys():
        raise DataError("two runs of different processors or definitions cannot be combined")
    definitions = {
        name: [_lower(name, *pair) for pair in zip_longest(parts, second.definitions[name])]
        for name, parts in first.definitions.items()
    }
    about = {"runs": [first.about, second.about]}
    return Measurements(first.kind, first.hardware, about, definitions)


def _lower(
    name: str, first: MeasuredSketch | None, second: MeasuredSketch | None
) -> MeasuredSketch:
    """The lower times of a sketch's programs."""
    if first is None or second is None or not _same_programs(first.population, second.population):
        raise DataError(f"{name}: two runs of different programs cannot be combined")
    return dataclasses.replace(first, latency_s=np.minimum(first.latency_s, second.latency_s))


def _same_programs(first: Population, second: Population) -> bool:
    steps = first.sketch.steps == second.sketch.steps
    return steps and np.array_equal(first.choices, second.choices)


def _hardware(fields: Mapping[str, Any]) -> Hardware:
    """Lists of JSON are tuples again."""
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    return Hardware(**values)


def _restored(
    name: str, parts: Sequence[Mapping[str, Any]], hardware: Hardware, config: SketchConfig
) -> tuple[list[MeasuredSketch], int]:
    """The measured programs of a definition, and the number of those that no longer exist."""
    if name not in DEFINITIONS:
        return [], sum(len(part["latency_s"]) for part in parts)
    task = task_of(name, _TARGET)
    sketches = {sketch.steps: sketch for sketch in sketches_of(task, hardware, config)}
    found, lost = [], 0
    for part in parts:
        programs = _programs(part)
        rows = [_row(sketches.get(program.steps), program) for program in programs]
        kept = [row for row in rows if row is not None]
        lost += len(rows) - len(kept)
        if len(kept) < len(rows):
            continue
        population = Population(sketches[programs[0].steps], np.stack(kept))
        latency_s = np.asarray(part["latency_s"], dtype=np.float64)
        preferred = np.asarray(part["preferred"], dtype=np.bool_)
        if not len(population) == len(latency_s) == len(preferred):
            raise ValueError(f"{name}: lists of different lengths")
        if not (np.isfinite(latency_s) & (latency_s > 0)).all():
            raise ValueError(f"{name}: a latency is not a positive number")
        found.append(MeasuredSketch(population, latency_s, preferred))
    return found, lost


def _programs(part: Mapping[str, Any]) -> list[Program]:
    """The programs of one stored sketch; without steps if one of these no longer exists."""
    try:
        steps = decode(json.dumps({"sketch": "", "steps": part["steps"], "values": {}})).steps
    except ValueError:
        steps = ()
    return [
        Program("", steps, {hole: tuple(rows[i]) for hole, rows in part["values"].items()})
        for i in range(len(part["latency_s"]))
    ]


def _row(sketch: Sketch | None, program: Program) -> npt.NDArray[np.int32] | None:
    """The choices of a program; None if the sketch or one of the values no longer exists."""
    if sketch is None or any(d.name not in program.values for d in sketch.decisions):
        return None
    return sketch.row_of(program)
