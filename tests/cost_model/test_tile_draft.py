"""The draft of instructions on tiles: results that can be computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from definitions import TILE_HARDWARE
from rows import Values, population_of
from sampling import sample

from ansor.annotate.complete import complete
from ansor.config import SketchConfig
from ansor.cost_model.scorer import seconds
from ansor.dag.from_tir.read import read_dag
from ansor.features.legality import legal
from ansor.features.profile import profile
from ansor.program.nest import build_nest
from ansor.program.sketch import Population, Sketch
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.targets.cpu.draft.draft import draft
from ansor.targets.cpu.draft.tile_block import tile_blocks
from ansor.workloads import build

SIZE = 512
FLOPS = 2 * SIZE**3
# Of two cores: 16 x 16 x 32 multiply-adds in 16 cycles.
PEAK = 2 * 2 * 16 * 16 * 32 / 16 * TILE_HARDWARE.frequency_hz


@pytest.fixture(scope="module")
def product() -> Sketch:
    """512 x 512 x 512 in bfloat16, with packed weights."""
    func = build("matmul", dtype="bfloat16", rows=SIZE, columns=SIZE, depth=SIZE).func
    config, dag = SketchConfig(), read_dag(func, (1,))
    state = generate(dag, TILE_HARDWARE, CPU_RULES, config)[0]
    return complete(state, TILE_HARDWARE, config)


def values(rows: int, lanes: int) -> Values:
    """A program with a number of result tiles in registers."""
    return {
        "C.B.packed": (32,),
        "C.i": (4, 8 // rows, 1, rows, 16),
        "C.j": (4, 8 // lanes, 1, lanes, 16),
        "C.k": (1, 16, 16),
        "C.parallel": (2,),
        "C.unroll": (0,),
        "C.prefetch": (1,),
    }


def drafted(population: Population) -> np.ndarray:
    return seconds(draft(profile(build_nest(population)), TILE_HARDWARE))


def test_a_step_loads_each_operand_once(product: Sketch) -> None:
    found = profile(build_nest(population_of(product, (values(2, 2), values(1, 4)))))
    tile = tile_blocks(found, TILE_HARDWARE)["C"]
    assert tile.statements.tolist() == [4, 4]
    rounds = 16
    assert tile.loads.tolist() == [16 * (4 + 4 / rounds), 16 * (5 + 4 / rounds)]
    assert tile.stores.tolist() == [16 * 4 / rounds] * 2
    assert (tile.steps * tile.statements * 16**3 * 2 * 2 == FLOPS).all()


def test_more_result_tiles_are_faster(product: Sketch) -> None:
    one, row, square = drafted(population_of(product, (values(1, 1), values(1, 2), values(2, 2))))
    assert square < row < one
    assert one > 1.3 * square  # each product waits for the one before


def test_no_program_exceeds_the_peak(product: Sketch) -> None:
    drawn = sample(product, 512, np.random.default_rng(0))
    allowed = legal(build_nest(drawn), TILE_HARDWARE, SketchConfig())
    population = drawn.take(np.flatnonzero(allowed))
    share = FLOPS / drafted(population) / PEAK
    assert share.max() < 1
    assert share.max() > 0.2
