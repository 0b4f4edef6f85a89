"""Intermediate buffers in registers: the draft's predictions against LLVM's own language."""

from __future__ import annotations

import re

import numpy as np
import pytest
from definitions import HARDWARE, sketches
from machine_code import compiled
from rows import Values, population_of

from ansor.annotate.complete import complete
from ansor.annotate.sample import sample
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.features.profile import profile
from ansor.program.nest import build_nest
from ansor.program.sketch import Sketch
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.targets.cpu.draft.compiled import compiled_loops
from ansor.targets.cpu.draft.constants import DEFAULTS
from ansor.targets.cpu.draft.promotion import promoted_buffers
from ansor.targets.cpu.draft.register_tile import register_tiles
from ansor.workloads import build

# The cache of a tile of 224 x 256, inside the second level of loops.
TILES: dict[str, Values] = {
    # 4 x 2 registers, all indices known
    "held": {"C.i": (2, 28, 1, 4), "C.j": (4, 2, 1, 32)},
    # the same in two columns; LLVM unrolls their loop
    "unrolled": {"C.i": (2, 28, 1, 4), "C.j": (4, 2, 2, 16), "C.k": (128, 2)},
    # a loop over two parts of the rows stays, and moves the cache
    "moved": {"C.i": (2, 14, 2, 4), "C.j": (4, 2, 1, 32), "C.k": (16, 16)},
    # 14 x 2 registers of 64 bytes: more than TVM puts on the stack
    "large": {"C.i": (2, 8, 1, 14), "C.j": (4, 2, 1, 32)},
}
REST: Values = {"C.k": (32, 8), "C.parallel": (2,), "C.unroll": (64,)}
FUNC = build("matmul", rows=224, columns=256, depth=256).func


@pytest.fixture(scope="module")
def cached() -> Sketch:
    """With a cache of the product, copied tile by tile."""
    config = SketchConfig()
    states = generate(read_dag(FUNC), HARDWARE, CPU_RULES, config)
    state = next(s for s in states if ".cache" in str(s.steps) and "level=2" in str(s.steps))
    return complete(state, HARDWARE, config)


def in_memory(sketch: Sketch, tiles: Values, processor: str) -> bool:
    """Whether LLVM has left an array of floats in the code, on the stack or beyond."""
    program = population_of(sketch, [REST | tiles]).program(0)
    code = compiled(FUNC, program, processor, "ll")
    own = r"= alloca .*float|load ptr, ptr @__TVMBackendAllocWorkspace"
    return bool(re.search(own, code))


@pytest.mark.parametrize("processor", ["znver4", "cascadelake"])
@pytest.mark.parametrize("name", list(TILES))
def test_the_draft_knows_what_llvm_promotes(cached: Sketch, name: str, processor: str) -> None:
    profiles = profile(build_nest(population_of(cached, [REST | TILES[name]])))
    loops = {stage: compiled_loops(found, HARDWARE, DEFAULTS) for stage, found in profiles.items()}
    promoted = promoted_buffers(profiles, loops, HARDWARE, DEFAULTS.compiler)
    assert set(promoted) == {"C.cache"}
    assert promoted["C.cache"].tolist() == [name in ("held", "unrolled")]
    assert promoted["C.cache"][0] != in_memory(cached, TILES[name], processor)


def test_a_promoted_cache_is_neither_stored_nor_loaded(cached: Sketch) -> None:
    """By hand: the tile of 8 registers leaves none of its stores, and its copy stores them once."""
    tiles = register_tiles(
        profile(build_nest(population_of(cached, [REST | TILES["held"]]))), HARDWARE, DEFAULTS
    )
    assert tiles["C"].stores.tolist() == [0]
    copy = tiles["C.cache"]
    assert copy.loads.tolist() == [0]
    np.testing.assert_allclose(copy.stores * copy.steps, 224 * 256 / 16)


def test_a_buffer_outside_of_all_loops_is_in_memory() -> None:
    apart = [s for s in sketches("matmul_relu") if not s.roles.fused_into("C")]
    assert apart
    for sketch in apart:
        profiles = profile(build_nest(sample(sketch, 50, np.random.default_rng(0))))
        loops = {
            stage: compiled_loops(found, HARDWARE, DEFAULTS) for stage, found in profiles.items()
        }
        promoted = promoted_buffers(profiles, loops, HARDWARE, DEFAULTS.compiler)
        assert not np.any(promoted.get("C", False))


def test_sums_under_conditions_go_to_memory_unless_they_are_promoted() -> None:
    """A depthwise convolution with its padding inlined: half of the sums of copies that check."""
    seen = {True: 0, False: 0}
    for sketch in sketches("depthwise_conv2d"):
        if not sketch.dag.stages["conv"].has_branch:
            continue
        profiles = profile(build_nest(sample(sketch, 300, np.random.default_rng(0))))
        tile = register_tiles(profiles, HARDWARE, DEFAULTS)["conv"]
        loops = {
            stage: compiled_loops(found, HARDWARE, DEFAULTS) for stage, found in profiles.items()
        }
        buffer = profiles["conv"].accesses[-1].buffer.name
        kept = promoted_buffers(profiles, loops, HARDWARE, DEFAULTS.compiler).get(
            buffer, np.zeros(300, dtype=bool)
        )
        checked = tile.checks > 0
        assert (tile.stores >= tile.statements * tile.fill / 2)[checked & ~kept].all()
        few = tile.accumulators < HARDWARE.vector_registers / 2  # nothing else is spilled
        assert (tile.stores < tile.statements * tile.fill / 2)[checked & kept & few].all()
        seen[True] += int((checked & kept & few).sum())
        seen[False] += int((checked & ~kept).sum())
    assert all(seen.values())
