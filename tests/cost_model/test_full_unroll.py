"""Loops that LLVM unrolls in full: the draft's predictions against machine code."""

from __future__ import annotations

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

# Tiles of 224 x 256: multiply-adds of a block if the loop over parts of it is gone; whether it is.
# LLVM unrolls up to 150 instructions in full, 200 or so of at most ten iterations.
TILES: dict[str, tuple[Values, int, bool]] = {
    # 16, 8 loads, 2 x 2 for the sums; what is read of A has left the loop: 4 x 44
    "columns": ({"C.i": (2, 56, 1, 2), "C.j": (4, 1, 4, 16), "C.k": (32, 8)}, 64, True),
    # the same 16; what is read of B has left, but 16 elements of A are 3 instructions each: 4 x 84
    "rows": ({"C.i": (2, 14, 4, 2), "C.j": (8, 2, 1, 16), "C.k": (32, 8)}, 64, False),
    # 32, spelled out: 4 x 80
    "large": (
        {"C.i": (2, 28, 1, 4), "C.j": (4, 1, 4, 16), "C.k": (32, 8), "C.unroll": (64,)},
        128,
        False,
    ),
    # 2, 2 loads and 2 for the sum: 16 x 8
    "many": ({"C.i": (2, 112, 1, 1), "C.j": (1, 1, 16, 16), "C.k": (128, 2)}, 32, True),
    # 4: 16 x 14
    "too many": ({"C.i": (2, 112, 1, 1), "C.j": (1, 1, 16, 16), "C.k": (64, 4)}, 64, False),
}
REST: Values = {"C.parallel": (2,), "C.unroll": (16,)}
FUNC = build("matmul", rows=224, columns=256, depth=256).func


@pytest.fixture(scope="module")
def matmul() -> Sketch:
    config = SketchConfig()
    return complete(generate(read_dag(FUNC), HARDWARE, CPU_RULES, config)[0], HARDWARE, config)


@pytest.mark.parametrize("processor", ["znver4", "cascadelake"])
@pytest.mark.parametrize("name", list(TILES))
def test_the_draft_knows_what_llvm_unrolls(matmul: Sketch, name: str, processor: str) -> None:
    values, whole, gone = TILES[name]
    population = population_of(matmul, [REST | values])
    tile = register_tiles(profile(build_nest(population)), HARDWARE, DEFAULTS)["C"]
    assert (tile.statements == whole).tolist() == [gone]
    block = hottest_block(FUNC, population.program(0), processor)
    assert (block.count("vfmadd") == whole) == gone  # it may be unrolled in part
