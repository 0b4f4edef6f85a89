"""Instructions on tiles: programs are right without them, and contain them where they exist."""

from __future__ import annotations

import ctypes
import platform
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import tvm
from definitions import HARDWARE, TILE_HARDWARE, TILED, tile_sketches, workload
from machine_code import compiled
from sampling import sample
from tvm import te, tirx

from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.features.legality import legal
from ansor.linking.link import link
from ansor.lowering import pipeline
from ansor.lowering.for_cpu import for_cpu
from ansor.lowering.lower import lower
from ansor.lowering.statements import collect
from ansor.program.dot_instructions import DOT_INSTRUCTIONS
from ansor.program.layout import packed_arrays
from ansor.program.nest import build_nest
from ansor.program.nest.tile_loops import result_tiles
from ansor.program.program import Program
from ansor.program.sketch import Population, Sketch
from ansor.program.steps import DotTile
from ansor.program.tile_instructions import TILE_INSTRUCTIONS
from ansor.targets.build import compile_function
from ansor.targets.cpu.machine import DotUnit
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.targets.target import resolve_target, target_text
from ansor.workloads import build

PROGRAMS = 2  # of each sketch
NATIVE = target_text(resolve_target("native"), 2)
PLAIN = '{"kind": "llvm", "mcpu": "x86-64-v2", "num-cores": 2}'
AMX = "sapphirerapids"
Array = npt.NDArray[Any]


def legal_programs(sketch: Sketch, count: int = PROGRAMS) -> Population:
    drawn = sample(sketch, 256, np.random.default_rng(0))
    allowed = np.flatnonzero(legal(build_nest(drawn), TILE_HARDWARE, SketchConfig()))
    assert len(allowed) >= count
    return drawn.take(allowed[:count])


def run(func: tirx.PrimFunc, program: Program, inputs: list[Array], out: Array) -> Array:
    """The results of a program."""
    named = dict(zip(read_dag(func).buffers, inputs, strict=False))
    arrays = packed_arrays(program, named).values()
    result = tvm.runtime.tensor(np.zeros(out.shape, out.dtype))
    module: Any = compile_function(lower(func, program), NATIVE)
    module(*map(tvm.runtime.tensor, arrays), result)
    return np.asarray(result.numpy())


def assert_close(found: Array, expected: Array) -> None:
    if expected.dtype.kind in "iu":
        assert np.array_equal(found, expected)
    else:  # one rounding to bfloat16, and the order of the sums
        wide = expected.astype(np.float64)
        assert (np.abs(found.astype(np.float64) - wide) <= 2**-7 * np.abs(wide) + 1e-3).all()


@pytest.mark.parametrize("constants", [(), (1,)], ids=["packed", "constant"])
@pytest.mark.parametrize("name", TILED)
def test_sampled_programs_are_right(name: str, constants: tuple[int, ...]) -> None:
    definition = workload(name)
    inputs = definition.inputs(np.random.default_rng(1))
    expected = definition.reference(*inputs)
    for sketch in tile_sketches(name, constants):
        population = legal_programs(sketch)
        for row in range(len(population)):
            found = run(definition.func, population.program(row), inputs, expected)
            assert_close(found, expected)


@pytest.mark.parametrize("name", TILED)
def test_each_sketch_multiplies_tiles(name: str) -> None:
    assert tile_sketches(name)
    for sketch in tile_sketches(name):
        assert any(isinstance(step, DotTile) for step in sketch.steps)


def test_a_program_is_right_on_a_processor_without_any_of_the_instructions() -> None:
    definition = workload("tiled_int8_matmul")
    inputs = definition.inputs(np.random.default_rng(1))
    expected = definition.reference(*inputs)
    program = legal_programs(tile_sketches("tiled_int8_matmul")[0], 1).program(0)
    module: Any = compile_function(lower(definition.func, program), PLAIN)
    result = tvm.runtime.tensor(np.zeros(expected.shape, expected.dtype))
    module(*map(tvm.runtime.tensor, inputs), result)
    assert np.array_equal(result.numpy(), expected)


@dataclass(frozen=True)
class Fused:
    """A product with what follows it in one function."""

    func: tirx.PrimFunc
    inputs: list[Array]
    expected: Array


def with_residual() -> Fused:
    """Bias, activation and residual; the result in bfloat16."""
    wide, short = "float32", "bfloat16"
    a, b = te.placeholder((35, 64), short, "a"), te.placeholder((64, 48), short, "b")
    bias, rest = te.placeholder((48,), wide, "bias"), te.placeholder((35, 48), short, "rest")
    k = te.reduce_axis((0, 64), "k")
    total = te.compute(
        (35, 48), lambda i, j: te.sum(a[i, k].astype(wide) * b[k, j].astype(wide), axis=k), "total"
    )
    active = te.compute(
        (35, 48), lambda i, j: te.max(total[i, j] + bias[j], tirx.const(0, wide)), "active"
    )
    out = te.compute(
        (35, 48), lambda i, j: (active[i, j] + rest[i, j].astype(wide)).astype(short), "out"
    )
    rng = np.random.default_rng(2)
    shapes = {a: (35, 64), b: (64, 48), bias: (48,), rest: (35, 48)}
    drawn = [rng.standard_normal(shape, np.float32) for shape in shapes.values()]
    arrays = [
        array if x is bias else array.astype(ml_dtypes.bfloat16)
        for x, array in zip(shapes, drawn, strict=True)
    ]
    left, right, added, residual = (array.astype(np.float32) for array in arrays)
    expected = np.maximum(left @ right + added, 0) + residual
    func = te.create_prim_func([a, b, bias, rest, out])
    return Fused(func, arrays, expected.astype(ml_dtypes.bfloat16))


def requantised(left: str, right: str) -> Fused:
    """Sums of 8-bit products to uint8 again: bias, scale, rounding, bounds."""
    a, b = te.placeholder((20, 64), left, "a"), te.placeholder((64, 32), right, "b")
    bias, k = te.placeholder((32,), "int32", "bias"), te.reduce_axis((0, 64), "k")
    total = te.compute(
        (20, 32),
        lambda i, j: te.sum(a[i, k].astype("int32") * b[k, j].astype("int32"), axis=k),
        "total",
    )
    scale = 2**-10

    def short(i: Any, j: Any) -> Any:
        scaled = (total[i, j] + bias[j]).astype("float32") * tirx.const(scale, "float32")
        low, high = tirx.const(0, "float32"), tirx.const(255, "float32")
        return te.min(te.max(te.round(scaled), low), high).astype("uint8")

    out = te.compute((20, 32), short, "out")
    rng = np.random.default_rng(3)
    arrays: list[Array] = [
        rng.integers(0, 256, (20, 64)).astype(left),
        rng.integers(0, 256, (64, 32)).astype(right),
        rng.integers(-1000, 1000, (32,)).astype(np.int32),
    ]
    sums = arrays[0].astype(np.int32) @ arrays[1].astype(np.int32) + arrays[2]
    expected = np.clip(np.round(sums * np.float32(scale)), 0, 255).astype(np.uint8)
    return Fused(te.create_prim_func([a, b, bias, out]), arrays, expected)


EVERY_UNIT = replace(
    TILE_HARDWARE,
    dot_units=(
        *(DotUnit(each.name, 1.0, 4.0) for each in DOT_INSTRUCTIONS),
        *(DotUnit(each.name, 1 / 16, 52.0) for each in TILE_INSTRUCTIONS),
    ),
)


@pytest.mark.parametrize(
    ("fused", "instruction"),
    [
        (with_residual(), "tdpbf16ps"),
        (requantised("uint8", "int8"), "tdpbusd"),
        (requantised("int8", "uint8"), "tdpbsud"),
        (requantised("int8", "int8"), "tdpbssd"),
        (requantised("uint8", "uint8"), "tdpbuud"),
    ],
    ids=["residual", "tdpbusd", "tdpbsud", "tdpbssd", "tdpbuud"],
)
def test_what_follows_a_product_is_computed_with_its_tiles(fused: Fused, instruction: str) -> None:
    sketches = CPU_SEARCH.sketches(read_dag(fused.func, (1,)), EVERY_UNIT, SketchConfig())
    tiled = [s for s in sketches if any(isinstance(step, DotTile) for step in s.steps)]
    assert tiled
    for sketch in tiled:
        program = legal_programs(sketch, 1).program(0)
        assert_close(run(fused.func, program, fused.inputs, fused.expected), fused.expected)
    assert instruction in compiled(fused.func, program, AMX)


def test_prefetches_stand_between_products_of_tiles() -> None:
    """Large constants are prefetched by decision, and operands beyond the second cache always."""
    small = replace(EVERY_UNIT, cache_bytes=(256, 1 << 11, 1 << 20))
    config = SketchConfig(min_prefetch_bytes=0, min_prefetch_part=64, min_prefetch_run=64)
    definition = workload("tiled_matmul")
    inputs = definition.inputs(np.random.default_rng(1))
    expected = definition.reference(*inputs)
    for constants in ((), (1,)):
        (sketch, *_) = CPU_SEARCH.sketches(read_dag(definition.func, constants), small, config)
        population = legal_programs(sketch)
        for row in range(len(population)):
            found = run(definition.func, population.program(row), inputs, expected)
            assert_close(found, expected)


@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("tiled_matmul", "tdpbf16ps"),
        ("tiled_batch_matmul", "tdpbf16ps"),
        ("tiled_conv2d", "tdpbf16ps"),
        ("tiled_int8_conv2d", "tdpbusd"),
    ],
)
def test_the_machine_code_has_the_instruction(name: str, instruction: str) -> None:
    for sketch in tile_sketches(name, (1,)):
        population = legal_programs(sketch, 1)
        code = compiled(workload(name).func, population.program(0), AMX)
        left, right = result_tiles(build_nest(population).stages[_tiled(sketch)])
        assert code.count(instruction) % int(left[0] * right[0]) == 0
        assert instruction in code
        assert "ansor_tile_" not in code  # each is one instruction, and none is called
        assert code.count("ldtilecfg") == code.count("tilerelease") == 1


def _tiled(sketch: Sketch) -> str:
    return next(step.stage for step in sketch.steps if isinstance(step, DotTile))


def issued(func: tirx.PrimFunc, program: Program, processor: str) -> tirx.PrimFunc:
    """A program with its instructions on tiles, before it becomes machine code."""
    target = tvm.target.Target({"kind": "llvm", "mcpu": processor, "num-cores": 2})
    made = for_cpu(tvm.IRModule({"main": lower(func, program)}), target, 2)
    made = tvm.IRModule({"main": made["main"].with_attr("target", target)})
    passes = [*pipeline._BEFORE, *pipeline._AFTER]
    last = next(i for i, each in enumerate(passes) if each() is pipeline._ISSUE_TILES)
    return tvm.transform.Sequential([make() for make in passes[: last + 1]])(made)["main"]


def test_each_thread_configures_its_tiles_once_and_outside_of_loops() -> None:
    (sketch, *_) = tile_sketches("tiled_matmul", (1,))
    values = legal_programs(sketch, 1).program(0).values
    program = Program("parallel", sketch.steps, {**values, "C.parallel": (2,)})
    body = issued(workload("tiled_matmul").func, program, AMX).body
    loops = [loop for loop in collect(body, tirx.For) if "begin" in str(loop)]
    assert [loop.kind for loop in loops] == [tirx.ForKind.PARALLEL]
    (loop,) = loops
    assert [_symbol(loop.body.seq[0]), _symbol(loop.body.seq[-1])] == ["begin", "release"]


def _symbol(stmt: Any) -> str:
    return str(stmt.value.args[0].value).removeprefix("ansor_tile").strip("s_").split("_")[0]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="links for x86-64")
def test_a_library_with_tiles_is_linked(tmp_path: Path) -> None:
    """The code requests the permission itself, without another library."""
    (sketch, *_) = tile_sketches("tiled_matmul", (1,))
    program = legal_programs(sketch, 1).program(0)
    target = f'{{"kind": "llvm", "mcpu": "{AMX}", "num-cores": 2}}'
    code, library = tmp_path / "a.o", tmp_path / "a.so"
    module: Any = compile_function(lower(workload("tiled_matmul").func, program), target)
    module.write_to_file(str(code), "o")
    library.write_bytes(link(code.read_bytes()))
    assert ctypes.CDLL(str(library))


def test_registers_hold_all_tiles_of_legal_programs() -> None:
    (sketch, *_) = tile_sketches("tiled_matmul")
    drawn = sample(sketch, 256, np.random.default_rng(0))
    nest = build_nest(drawn)
    left, right = result_tiles(nest.stages[_tiled(sketch)])
    needed = left * right + np.minimum(left, right) + 1
    assert (legal(nest, TILE_HARDWARE, SketchConfig()) <= (needed <= 8)).all()
    assert (needed > 8).any()


@pytest.mark.parametrize(
    ("base", "sizes"),
    [
        ("dense", {"rows": 1, "columns": 64, "depth": 64}),  # a matrix and a vector
        ("conv2d", {"height": 4, "width": 4, "channels": 2, "filters": 16}),  # few groups
    ],
)
def test_vectors_compute_what_fills_no_tiles(base: str, sizes: dict[str, int]) -> None:
    dag = read_dag(build(base, dtype="bfloat16", **sizes).func)
    for sketch in CPU_SEARCH.sketches(dag, TILE_HARDWARE, SketchConfig()):
        assert not any(isinstance(step, DotTile) for step in sketch.steps)


def test_a_machine_without_tiles_has_no_such_sketch() -> None:
    dag = read_dag(workload("tiled_matmul").func)
    for sketch in CPU_SEARCH.sketches(dag, HARDWARE, SketchConfig()):
        assert not any(isinstance(step, DotTile) for step in sketch.steps)
