"""Predictions of the compiler's transformations of loops that a program leaves unchanged."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import tvm
from definitions import HARDWARE, NAMES, sketches, square_matmul, workload
from rows import Values, population_of
from tvm import s_tir, tirx

from ansor.annotate.sample import sample
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.features.profile import profile
from ansor.lowering.lower import lower
from ansor.program.nest import build_nest
from ansor.program.sketch import Sketch
from ansor.targets.cpu.draft.compiled import CompiledLoops, compiled_loops
from ansor.targets.cpu.draft.constants import DEFAULTS
from ansor.targets.cpu.draft.full_unroll import unrolled_by_llvm, unrolled_by_tvm
from ansor.targets.cpu.draft.register_tile import register_tiles
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.workloads import build, suite_workload

BASE = {
    "C.i": (2, 8, 2, 8),
    "C.j": (4, 1, 2, 32),
    "C.k": (4, 64),
    "C.parallel": (2,),
    "C.unroll": (0,),
}


@pytest.fixture(scope="module")
def matmul() -> Sketch:
    return square_matmul(256)


def loops_of(sketch: Sketch, *programs: Values, hardware: Hardware = HARDWARE) -> CompiledLoops:
    found = profile(build_nest(population_of(sketch, programs)))["C"]
    return compiled_loops(found, hardware, DEFAULTS)


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


def test_llvm_forms_no_vectors_of_a_stage_with_an_instruction() -> None:
    dag = read_dag(workload("bfloat16_matmul").func)
    for sketch in CPU_SEARCH.sketches(dag, HARDWARE, SketchConfig()):
        programs = sample(sketch, 64, np.random.default_rng(0))
        found = profile(build_nest(programs))
        stage = next(each for each in found.values() if each.nest.stage.instruction)
        asked = np.ones(len(programs)) if stage.vector is None else stage.extents[stage.vector]
        assert (compiled_loops(stage, HARDWARE, DEFAULTS).width == asked).all()


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


def test_a_reduction_that_is_spelled_out_leaves_the_loop_around_it_to_be_vectors(
    matmul: Sketch,
) -> None:
    """However long it is: LLVM finds straight-line code."""
    scalar = {"C.i": (256, 1, 1, 1), "C.j": (1, 1, 256, 1), "C.k": (4, 64), "C.unroll": (64,)}
    assert loops_of(matmul, BASE | scalar).width.tolist() == [16]


def test_straight_line_code_becomes_vectors_in_a_loop_over_the_reduction(
    matmul: Sketch,
) -> None:
    """Eight columns side by side, spelled out, in a loop over the reduction, or over rows."""
    scalar = {"C.i": (256, 1, 1, 1), "C.j": (32, 1, 8, 1), "C.k": (256, 1), "C.unroll": (64,)}
    assert loops_of(matmul, BASE | scalar).width.tolist() == [8]
    rows = scalar | {"C.i": (4, 1, 64, 1), "C.unroll": (0,)}
    assert loops_of(matmul, BASE | rows).width.tolist() == [1]


def test_a_loop_that_became_one_vector_is_gone(matmul: Sketch) -> None:
    """16 columns are one vector, around which the sums stay in a register; 32 are a loop of two."""
    columns = [(16, 1, 16, 1), (8, 1, 32, 1)]
    scalar = {"C.i": (256, 1, 1, 1), "C.k": (64, 4)}
    loops = loops_of(matmul, *[BASE | scalar | {"C.j": j} for j in columns])
    assert loops.width.tolist() == [16, 16]
    assert loops.trips[3].tolist() == [1, 2]
    assert loops.reduction.tolist() == [256, 4]


@pytest.mark.parametrize("inlined", [False, True])
def test_reads_under_a_condition_are_left_alone(inlined: bool) -> None:
    """A depthwise convolution without a vector loop, its padding inlined or in a buffer."""
    own = [s for s in sketches("depthwise_conv2d") if s.dag.stages["conv"].has_branch == inlined]
    rng = np.random.default_rng(0)
    for sketch in own:
        found = profile(build_nest(sample(sketch, 200, rng)))["conv"]
        scalar = np.ones(found.extents.shape[1], dtype=np.bool_)
        if found.vector is not None:
            scalar = found.extents[found.vector] == 1
        widths = compiled_loops(found, HARDWARE, DEFAULTS).width[scalar]
        assert len(widths)
        assert (widths == 1).all() == inlined


def test_what_the_program_unrolls_itself_is_spelled_out(matmul: Sketch) -> None:
    """A tile of 8 x 2; two steps of the reduction, which LLVM unrolls; a tile of one vector."""
    tile = BASE | {"C.i": (2, 16, 1, 8), "C.j": (8, 1, 1, 32), "C.k": (256, 1)}
    one = tile | {"C.i": (16, 16, 1, 1), "C.j": (16, 1, 1, 16)}
    loops = loops_of(matmul, tile, tile | {"C.k": (128, 2)}, one)
    assert loops.spelled.tolist() == [True, False, False]


def test_a_vector_loop_that_was_asked_for_stays_as_it_is(matmul: Sketch) -> None:
    widths = [16, 32, 64]
    programs = [BASE | {"C.j": (256 // w, 1, 1, w)} for w in widths]
    assert loops_of(matmul, *programs).width.tolist() == widths


@pytest.mark.parametrize("name", NAMES)
def test_blocks_cover_all_iterations(name: str) -> None:
    """No stage does less work: the number of blocks times the elements of one is the whole domain,
    except products with constant zeros."""
    rng = np.random.default_rng(0)
    for sketch in sketches(name):
        profiles = profile(build_nest(sample(sketch, 100, rng)))
        tiles = register_tiles(profiles, HARDWARE, DEFAULTS)
        for stage, found in profiles.items():
            loops, tile = compiled_loops(found, HARDWARE, DEFAULTS), tiles[stage]
            assert (loops.unrolled >= 1).all()
            assert (loops.unrolled <= np.maximum(found.extents, 1)).all()
            assert (loops.width >= 1).all()
            assert (loops.points >= 1).all()
            total = tile.steps * tile.elements * tile.depth
            left = found.nest.executed * found.nest.density
            assert np.allclose(total, found.iterations * left, rtol=1e-4)


def test_a_longer_chain_waits_longer(matmul: Sketch) -> None:
    """One accumulator: the more additions follow each other, the fewer chains are in flight."""
    programs = [
        BASE | {"C.i": (256, 1, 1, 1), "C.j": (1, 1, 16, 16), "C.k": (256 // k, k)}
        for k in (16, 64, 256)
    ]
    profiles = profile(build_nest(population_of(matmul, programs)))
    found = register_tiles(profiles, HARDWARE, DEFAULTS)["C"]
    assert all(a < b for a, b in pairwise(found.chain.tolist()))


def loops_left(func: tirx.PrimFunc) -> int:
    """Depth of the nest of loops after TVM's unrolling."""
    passes = [
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.ConvertBlocksToOpaque(),
        s_tir.transform.LowerOpaqueBlock(),
        tirx.transform.FlattenBuffer(),
        tirx.transform.VectorizeLoop(),
        tirx.transform.UnrollLoop(),
    ]
    done = tvm.transform.Sequential(passes)(tvm.IRModule({"main": func}))["main"]
    depths: list[int] = []

    def measure(node: object, depth: int) -> None:
        depths.append(depth)
        if isinstance(node, tirx.For):
            measure(node.body, depth + (int(node.extent) > 1))
        elif isinstance(node, tirx.SeqStmt):
            for part in node.seq:
                measure(part, depth)
        elif hasattr(node, "body"):
            measure(node.body, depth)

    measure(done.body, 0)
    return max(depths)


@pytest.mark.parametrize("seed", range(8))
def test_tvm_unrolls_what_the_draft_says(matmul: Sketch, seed: int) -> None:
    func = build("matmul", rows=256, columns=256, depth=256).func
    population = sample(matmul, 6, np.random.default_rng(seed))
    found = profile(build_nest(population))["C"]
    asked = unrolled_by_tvm(found)
    parallel = found.nest.parallel[list(found.active)]
    stays = (found.extents > 1) & ~asked
    if found.vector is not None:
        stays[found.vector] = False
    fused = (stays & parallel).any(axis=0).astype(int) - (stays & parallel).sum(axis=0)
    for row, expected in enumerate(stays.sum(axis=0) + fused):
        assert loops_left(lower(func, population.program(row))) == expected


def test_unrolling_goes_on_until_there_are_too_many_statements(matmul: Sketch) -> None:
    tile = {"C.i": (2, 8, 2, 8), "C.j": (4, 1, 2, 32), "C.k": (64, 4)}
    programs = [BASE | tile | {"C.unroll": (most,)} for most in (0, 16, 64)]
    found = profile(build_nest(population_of(matmul, programs)))["C"]
    copies = np.where(unrolled_by_tvm(found), found.extents, 1).prod(axis=0)
    assert copies.tolist() == [8, 8, 64]  # the tile; with four steps of k and two of j


def test_what_is_left_to_llvm_is_a_risk(matmul: Sketch) -> None:
    tile = {"C.i": (2, 16, 2, 4), "C.j": (4, 2, 1, 32), "C.k": (256, 1)}
    spelled, left = (loops_of(matmul, BASE | tile | {"C.unroll": (n,)}) for n in (16, 0))
    assert spelled.points.tolist() == left.points.tolist() == [2 * 4]
    assert spelled.risk.tolist() == [1.0]
    scalar = {"C.i": (64, 4, 1, 1), "C.j": (1, 1, 256, 1), "C.k": (256, 1)}
    (vectors,) = loops_of(matmul, BASE | scalar).risk.tolist()
    assert 1 < left.risk[0] < vectors


def test_a_reduction_that_is_barely_unrolled_is_a_risk_for_vectors() -> None:
    """A window of nine over tiles of two rows and one or two columns, a loop of channels around."""
    graph = read_dag(suite_workload("DEP.0").func)
    config = SketchConfig()
    found = CPU_SEARCH.sketches(graph, HARDWARE, config)
    sketch = next(
        s for s in found if "padded.location" in s.column and "conv.cache" not in s.dag.stages
    )
    rest = {"conv.parallel": (2,), "padded.location": (3,), "conv.unroll": (0,)}
    window = {"conv.ry": (1, 3), "conv.rx": (1, 3), "conv.c": (2, 16, 1, 1), "conv.n": (1,) * 4}
    tiles = [
        {"conv.y": (14, 2, 2, 2), "conv.x": (14, 4 * 2 // columns, columns, 1)}
        for columns in (2, 1)
    ]
    programs = [rest | window | tile for tile in tiles]
    nest = profile(build_nest(population_of(sketch, programs)))["conv"]
    one = np.ones(2, dtype=np.float32)
    alone, barely = unrolled_by_llvm(nest, unrolled_by_tvm(nest), one, DEFAULTS.compiler)
    assert (alone & nest.reductions).any(axis=0).all()
    assert barely.tolist() == [True, False]
    compiled = compiled_loops(nest, HARDWARE, DEFAULTS)
    assert (compiled.width > 1).all()
    assert compiled.risk[0] > 1.1
    assert compiled.risk[1] == 1
