"""Panels that do not divide a constant's columns: places, results, and preferences of the
search."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tvm
from definitions import HARDWARE
from hypothesis import given
from hypothesis import strategies as st
from machine_code import compiled
from sampling import sample
from test_lower import assert_close, run

from ansor.config import SketchConfig
from ansor.cost_model.scorer import seconds
from ansor.dag.from_tir.read import read_dag
from ansor.features.legality import legal
from ansor.features.profile import profile
from ansor.lowering.lower import lower
from ansor.program.codec import decode, encode
from ansor.program.layout import PackedLayout, packed_arrays, packings
from ansor.program.nest import build_nest
from ansor.program.sketch import Population, Sketch
from ansor.targets.cpu.draft.draft import draft
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.workloads import build

CONFIG = SketchConfig(unroll_steps=(0, 16))
LANES = 16  # of a register of `HARDWARE`, float32
PROGRAMS = 3  # of each sketch


def product(
    rows: int, columns: int, depth: int, dtype: str = "float32"
) -> tuple[tvm.tirx.PrimFunc, list[Sketch]]:
    """A product of matrices with a fused ReLU, the second of which is constant."""
    func = build("matmul", rows=rows, columns=columns, depth=depth, relu=1, dtype=dtype).func
    return func, list(CPU_SEARCH.sketches(read_dag(func, constants=[1]), HARDWARE, CONFIG))


def values_of(drawn: Population, end: str) -> np.ndarray:
    """The choice of the decision of a name in each program."""
    (hole,) = [d.name for d in drawn.sketch.decisions if d.name.endswith(end)]
    return drawn.values(hole)


def packed_rows(drawn: Population, columns: int) -> np.ndarray:
    """Numbers of the legal programs with panels, those with a moved tile first."""
    width = values_of(drawn, ".packed")[:, 0]
    found = legal(build_nest(drawn), HARDWARE, CONFIG) & (width > 0) & (width < columns)
    moved = values_of(drawn, ".j").prod(axis=1) > columns
    return np.concatenate([np.flatnonzero(found & moved), np.flatnonzero(found & ~moved)])


@given(
    columns=st.integers(1, 90),
    width=st.integers(1, 40),
    tile=st.integers(0, 40),
    groups=st.sampled_from([1, 2]),
)
def test_each_place_has_its_column(columns: int, width: int, tile: int, groups: int) -> None:
    """Tile by tile, and back."""
    tile = min(tile, columns)
    array = np.arange(1, 4 * columns + 1).reshape(4, columns)
    layout = PackedLayout(width, 0, groups, tile)
    packed = layout.pack(array)
    assert packed.flags.c_contiguous
    assert packed.shape == layout.shape(array.shape)
    step = tile if layout.has_tiles(columns) else columns
    back, used = np.zeros_like(array), np.zeros(packed.shape, bool)
    for first in range(0, columns, step):
        start = min(first, columns - step)  # a moved tile
        for row, column in np.ndindex(4, step):
            place = tuple(layout.index((row, first + column)))
            back[row, start + column], used[place] = packed[place], True
    assert np.array_equal(back, array)
    assert (packed[~used] == 0).all()


@pytest.mark.parametrize("columns", [17, 33, 50, 97])
def test_programs_are_right(columns: int) -> None:
    func, sketches = product(5, columns, 6)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 6), dtype=np.float32)
    y = rng.standard_normal((6, columns), dtype=np.float32)
    moved = 0
    for sketch in sketches:
        drawn = sample(sketch, 256, rng)
        for row in packed_rows(drawn, columns)[:PROGRAMS]:
            program = drawn.program(int(row))
            assert decode(encode(program)) == program
            arrays = list(packed_arrays(program, {"A": x, "B": y}).values())
            found = run(lower(func, program), arrays, (5, columns))
            assert_close(found, np.maximum(x @ y, 0))
            (layout,) = packings(program).values()
            moved += columns % layout.tile > 0
    assert moved


@pytest.mark.parametrize("columns", [8, LANES])
def test_no_register_no_panels(columns: int) -> None:
    for sketch in product(4, columns, 8)[1]:
        (packed,) = [d for d in sketch.decisions if d.name.endswith(".packed")]
        assert packed.table.tolist() == [[0]]


@pytest.mark.parametrize("rows", [1, 24])
def test_the_draft_prefers_panels_of_whole_registers(rows: int) -> None:
    columns, best = 521, []  # a prime number
    for sketch in product(rows, columns, 512)[1]:
        drawn = sample(sketch, 2048, np.random.default_rng(0))
        nest = build_nest(drawn)
        allowed = np.flatnonzero(legal(nest, HARDWARE, CONFIG))
        time = seconds(draft(profile(nest), HARDWARE))[allowed]
        row = allowed[time.argmin()]
        chosen = (int(values_of(drawn, e)[row, -1]) for e in (".packed", ".j"))
        best.append((float(time.min()), *chosen))
    _, width, tile = min(best)
    assert width > 0
    assert width % LANES == 0
    assert tile % LANES == 0


def test_vectors_of_a_moved_tile_are_loads() -> None:
    """One load or operand in memory for each register, and nothing gathered or put together."""
    columns = 97
    func, sketches = product(4, columns, 64)
    populations = [sample(sketch, 512, np.random.default_rng(1)) for sketch in sketches]
    program = next(
        drawn.program(int(row))
        for drawn in populations
        for row in packed_rows(drawn, columns)
        if values_of(drawn, ".j")[row].prod() > columns
    )
    code = compiled(func, program, "znver4")
    assert re.search(r"vfmadd\w+ps.*zmm", code)
    assert not re.search(r"vp?gather|vinsertps|vpinsrd|vperm", code)
