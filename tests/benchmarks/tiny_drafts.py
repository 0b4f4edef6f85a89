"""A set of measured programs with made-up times."""

from __future__ import annotations

from functools import cache

import numpy as np

from ansor.annotate.sample import sample
from ansor.config import FULL
from ansor.targets.cpu.machine import Hardware
from benchmarks.draft_data import MeasuredSketch, Measurements
from benchmarks.draft_definitions import sketches_of, task_of

HARDWARE = Hardware(name="tiny", cores=3, vector_bytes=32)
NAMES = ("heads", "row_sum")
PROGRAMS = 4


@cache
def tiny() -> Measurements:
    """A few programs of each sketch of two operators, with made-up times."""
    rng = np.random.default_rng(0)
    definitions = {}
    for name in NAMES:
        parts = []
        for sketch in sketches_of(task_of(name, "llvm"), HARDWARE, FULL.sketch):
            population = sample(sketch, PROGRAMS, rng)
            count = len(population)
            parts.append(
                MeasuredSketch(population, rng.random(count) + 1e-6, rng.random(count) < 0.5)
            )
        definitions[name] = parts
    return Measurements("tiny", HARDWARE, {"threads": 3}, definitions)
