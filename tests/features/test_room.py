"""The part of a cache that a footprint occupies if rows have a distance of a power of two."""

from __future__ import annotations

import numpy as np
import pytest
from definitions import HARDWARE
from rows import population_of

from ansor.annotate.complete import complete
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.features.profile import AccessProfile, profile
from ansor.program.nest import build_nest
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.workloads import build

LINE = 64


def weights(columns: int, tile: int) -> AccessProfile:
    """B `[64, columns]` of a product whose innermost tile is `tile` columns wide."""
    func = build("matmul", rows=8, columns=columns, depth=64).func
    config = SketchConfig()
    sketch = complete(generate(read_dag(func), HARDWARE, CPU_RULES, config)[0], HARDWARE, config)
    program = {
        "C.i": (8, 1, 1, 1),
        "C.j": (columns // tile, 1, 1, tile),
        "C.k": (1, 64),
        "C.parallel": (0,),
        "C.unroll": (0,),
    }
    found = profile(build_nest(population_of(sketch, [program])))["C"]
    (read,) = (a for a in found.accesses if a.buffer.name == "B")
    return read


@pytest.mark.parametrize(
    ("columns", "tile", "factor"),
    [
        (256, 32, 8),  # 128 bytes of every 1024
        (1024, 32, 32),  # 128 bytes of every page
        (1024, 64, 16),
        (2048, 16, 64),  # rows of two pages: no worse than one
        (48, 16, 1),  # 64 bytes of every 192: all sets are reached
        (32, 32, 1),  # whole rows: one run
    ],
)
def test_short_runs_a_power_of_two_apart_waste_sets(columns: int, tile: int, factor: int) -> None:
    read = weights(columns, tile)
    tiles = len(read.footprint) - 3  # outside k and j: 64 rows of a tile
    plain = read.lines(LINE)[tiles, 0] * LINE
    assert plain == 64 * tile * 4
    assert read.room(LINE)[tiles, 0] == pytest.approx(factor * plain)


def test_it_never_takes_less_than_its_lines() -> None:
    read = weights(512, 64)
    assert (read.room(LINE) >= read.lines(LINE) * np.float32(LINE) * 0.999).all()
