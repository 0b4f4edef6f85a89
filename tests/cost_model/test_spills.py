"""Registers that a block's copies hold between them: the draft's predictions against machine
code."""

from __future__ import annotations

import re

import pytest
from definitions import HARDWARE
from machine_code import hottest_block
from rows import Values, population_of

from ansor.annotate.complete import complete
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.features.profile import profile
from ansor.program.nest import build_nest
from ansor.program.sketch import Sketch
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.targets.cpu.draft.constants import DEFAULTS
from ansor.targets.cpu.draft.register_tile import register_tiles
from ansor.workloads import build

# Tiles of 224 x 256, with two steps of the reduction in a block.
TILES: dict[str, Values] = {
    # 28 accumulators; what is read of either operand is used at once
    "close": {"C.i": (2, 8, 1, 14), "C.j": (4, 2, 1, 32)},
    # 28; the copies of a loop over columns, outside the reduction, read the same rows
    "apart": {"C.i": (2, 16, 1, 7), "C.j": (2, 2, 4, 16)},
    # 8 in two such copies, which leave room to bring them together
    "small": {"C.i": (2, 56, 1, 2), "C.j": (2, 2, 4, 16)},
    # 56, which no order of the statements makes fit
    "large": {"C.i": (2, 2, 1, 56), "C.j": (4, 4, 1, 16)},
}
REST = {"C.k": (128, 2), "C.parallel": (2,), "C.unroll": (64,)}
FUNC = build("matmul", rows=224, columns=256, depth=256).func


@pytest.fixture(scope="module")
def matmul() -> Sketch:
    config = SketchConfig()
    return complete(generate(read_dag(FUNC), HARDWARE, CPU_RULES, config)[0], HARDWARE, config)


def spilled(sketch: Sketch, tiles: Values) -> float:
    """Stores of a step beside the block's results, by the draft."""
    found = profile(build_nest(population_of(sketch, [REST | tiles])))
    tile = register_tiles(found, HARDWARE, DEFAULTS)["C"]
    results = tile.accumulators * tile.depth / tile.chain
    return float((tile.stores - results)[0])


def stored(sketch: Sketch, tiles: Values, processor: str) -> int:
    """Vectors that the code of the block with the most multiply-adds puts on the stack."""
    program = population_of(sketch, [REST | tiles]).program(0)
    block = hottest_block(FUNC, program, processor)
    return len(re.findall(r"vmov\w+\s+%zmm\d+, \d*\(%rsp\)", block))


@pytest.mark.parametrize("processor", ["znver4", "cascadelake"])
@pytest.mark.parametrize("name", list(TILES))
def test_the_draft_knows_what_llvm_spills(matmul: Sketch, name: str, processor: str) -> None:
    found, expected = spilled(matmul, TILES[name]), stored(matmul, TILES[name], processor)
    assert (found > 0) == (expected > 0) == (name in ("apart", "large"))
    assert expected / 3 <= found <= 1.5 * expected
