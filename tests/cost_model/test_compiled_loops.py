"""What the compiler is taken to do with loops that a program leaves alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from definitions import HARDWARE, NAMES, sketches
from rows import Values, population_of

from ansor.annotate.complete import complete
from ansor.annotate.sample import sample
from ansor.config import SketchConfig
from ansor.cost_model.compiled import CompiledLoops, compiled_loops
from ansor.cost_model.register_tile import register_tile
from ansor.dag.from_tir import read_dag
from ansor.features.profile import profile
from ansor.hardware.cpu import Hardware
from ansor.program.nest import build_nest
from ansor.program.sketch import Sketch
from ansor.sketch.generate import generate
from ansor.workloads import build

BASE = {
    "C.i": (2, 8, 2, 8),
    "C.j": (4, 1, 2, 32),
    "C.k": (4, 64),
    "C.parallel": (2,),
    "C.unroll": (0,),
}


@pytest.fixture(scope="module")
def matmul() -> Sketch:
    dag = read_dag(build("matmul", rows=256, columns=256, depth=256).func)
    config = SketchConfig()
    return complete(generate(dag, HARDWARE, config)[0], HARDWARE, config)


def loops_of(sketch: Sketch, *programs: Values, hardware: Hardware = HARDWARE) -> CompiledLoops:
    found = profile(build_nest(population_of(sketch, programs)))["C"]
    return compiled_loops(found, hardware)


def test_a_run_of_the_reduction_goes_on_until_other_elements_follow(matmul: Sketch) -> None:
    splits = [(256, 1), (64, 4), (4, 64), (1, 256)]
    # i2 = j2 = 1: the outer reduction loop stands right outside the inner one.
    joined = [BASE | {"C.i": (2, 16, 1, 8), "C.j": (8, 1, 1, 32), "C.k": k} for k in splits]
    assert loops_of(matmul, *joined).reduction.tolist() == [256, 256, 256, 256]
    apart = [BASE | {"C.k": k} for k in splits[1:]]  # i2 = j2 = 2: only the inner one counts
    assert loops_of(matmul, *apart).reduction.tolist() == [4, 64, 256]


def test_short_spatial_loops_join_the_register_tile(matmul: Sketch) -> None:
    """Two loops of two around a tile of 8 statements, with the whole reduction outside."""
    tile = {"C.i": (2, 16, 2, 4), "C.j": (4, 1, 2, 32), "C.k": (256, 1)}
    loops = loops_of(matmul, BASE | tile)
    assert loops.points.tolist() == [2 * 4 * 2]
    assert loops.reduction.tolist() == [256]


def test_long_loops_stay(matmul: Sketch) -> None:
    long = {"C.i": (1, 1, 32, 8), "C.k": (256, 1)}
    loops = loops_of(matmul, BASE | long)
    assert loops.points.tolist() == [2 * 8]  # the two columns' blocks joined, the 32 rows' not
    assert loops.reduction.tolist() == [1]


def test_the_loop_along_memory_becomes_vectors(matmul: Sketch) -> None:
    """Rows innermost of the columns: j runs over 64 elements with no vector loop."""
    scalar = {"C.i": (64, 4, 1, 1), "C.j": (1, 1, 256, 1), "C.k": (256, 1)}
    assert loops_of(matmul, BASE | scalar).width.tolist() == [16]
    inside = scalar | {"C.k": (4, 64)}  # 64 steps of the reduction keep it from being vectorised
    assert loops_of(matmul, BASE | inside).width.tolist() == [1]
    few = scalar | {"C.k": (64, 4)}
    assert loops_of(matmul, BASE | few).width.tolist() == [16]


def test_a_vector_loop_that_was_asked_for_stays_as_it_is(matmul: Sketch) -> None:
    widths = [16, 32, 64]
    programs = [BASE | {"C.j": (256 // w, 1, 1, w)} for w in widths]
    assert loops_of(matmul, *programs).width.tolist() == widths


@pytest.mark.parametrize("name", NAMES)
def test_blocks_cover_all_iterations(name: str) -> None:
    """No stage is made to do less: blocks times what one computes is the whole domain."""
    rng = np.random.default_rng(0)
    for sketch in sketches(name):
        for found in profile(build_nest(sample(sketch, 100, rng))).values():
            loops, tile = compiled_loops(found, HARDWARE), register_tile(found, HARDWARE)
            assert (loops.unrolled >= 1).all()
            assert (loops.unrolled <= np.maximum(found.extents, 1)).all()
            assert (loops.width >= 1).all()
            assert (loops.points >= 1).all()
            total = tile.steps * tile.elements * tile.depth
            assert np.allclose(total, found.iterations, rtol=1e-4)


def test_a_longer_chain_waits_longer(matmul: Sketch) -> None:
    """One accumulator: the more additions follow each other, the fewer chains are in flight."""
    programs = [
        BASE | {"C.i": (256, 1, 1, 1), "C.j": (1, 1, 16, 16), "C.k": (256 // k, k)}
        for k in (16, 64, 256)
    ]
    found = register_tile(profile(build_nest(population_of(matmul, programs)))["C"], HARDWARE)
    assert all(a < b for a, b in pairwise(found.chain.tolist()))
