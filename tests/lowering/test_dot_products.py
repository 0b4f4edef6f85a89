"""Instructions for groups of products: programs are right with them and without them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tvm
from definitions import HARDWARE, LOW_PRECISION, workload
from hypothesis import given
from hypothesis import strategies as st
from machine_code import compiled
from sampling import sample
from tvm import te

from ansor.config import SketchConfig
from ansor.dag.dot_products import dot_operands
from ansor.dag.from_tir.read import read_dag
from ansor.features.legality import legal
from ansor.lowering.dot_functions import function_of, llvm_text, scalar_function, widths
from ansor.lowering.lower import lower
from ansor.program.dot_instructions import DOT_INSTRUCTIONS
from ansor.program.layout import PackedLayout, packed_arrays
from ansor.program.nest import build_nest
from ansor.program.program import Program
from ansor.program.sketch import Sketch
from ansor.program.steps import DotProducts, GroupedCacheRead, GroupedLayout
from ansor.targets.build import compile_function
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.targets.target import resolve_target, target_text

PROGRAMS = 4  # of each sketch
NATIVE = target_text(resolve_target("native"), 2)
PLAIN = '{"kind": "llvm", "mcpu": "x86-64-v2"}'  # without any of the instructions
CONFIG = SketchConfig(unroll_steps=(0, 16), max_unrolled_statements=16)


def sketches(name: str, constants: tuple[int, ...]) -> list[Sketch]:
    return CPU_SEARCH.sketches(read_dag(workload(name).func, constants), HARDWARE, CONFIG)


def programs(sketch: Sketch, rng: np.random.Generator) -> list[Program]:
    drawn = sample(sketch, 128, rng)
    allowed = np.flatnonzero(legal(build_nest(drawn), HARDWARE, CONFIG))
    return [drawn.program(int(row)) for row in allowed[:PROGRAMS]]


def run(name: str, program: Program, target: str) -> np.ndarray:
    """The results of a program for the inputs of a fixed seed."""
    definition = workload(name)
    inputs = definition.inputs(np.random.default_rng(1))
    expected = definition.reference(*inputs)
    named = dict(zip(read_dag(definition.func).buffers, inputs, strict=False))
    arrays = packed_arrays(program, named).values()
    out = tvm.runtime.tensor(np.zeros(expected.shape, expected.dtype))
    module: Any = compile_function(lower(definition.func, program), target)
    module(*map(tvm.runtime.tensor, arrays), out)
    return out.numpy()


def assert_right(name: str, found: np.ndarray) -> None:
    definition = workload(name)
    expected = definition.reference(*definition.inputs(np.random.default_rng(1)))
    if expected.dtype.kind in "iu":
        assert np.array_equal(found, expected)
    else:  # one rounding to bfloat16, and the order of the sums
        difference = np.abs(found.astype(np.float64) - expected.astype(np.float64))
        assert (difference <= 2**-7 * np.abs(expected.astype(np.float64)) + 1e-3).all()


@pytest.mark.parametrize("target", [NATIVE, PLAIN], ids=["native", "plain"])
@pytest.mark.parametrize("constants", [(), (1,)], ids=["packed", "constant"])
@pytest.mark.parametrize("name", LOW_PRECISION)
def test_sampled_programs_are_right(name: str, constants: tuple[int, ...], target: str) -> None:
    rng = np.random.default_rng(0)
    for sketch in sketches(name, constants):
        found = programs(sketch, rng)
        assert found
        for program in found:
            assert_right(name, run(name, program, target))


@pytest.mark.parametrize(
    ("name", "constants", "step"),
    [
        ("bfloat16_matmul", (), GroupedCacheRead),
        ("bfloat16_matmul", (1,), GroupedLayout),
        ("bfloat16_dense", (1,), GroupedCacheRead),  # its groups lie along memory already
        ("int8_conv2d", (), GroupedCacheRead),
        ("int8_conv2d", (1,), GroupedLayout),
    ],
)
def test_each_sketch_reads_groups(name: str, constants: tuple[int, ...], step: type) -> None:
    for sketch in sketches(name, constants):
        kinds = [type(each) for each in sketch.steps]
        assert DotProducts in kinds
        assert step in kinds


def test_channels_that_make_no_groups_are_multiplied_one_by_one() -> None:
    for sketch in sketches("int8_conv2d_few", ()):
        assert not any(isinstance(step, DotProducts) for step in sketch.steps)


def test_a_machine_without_the_instruction_does_not_use_it() -> None:
    dag = read_dag(workload("bfloat16_matmul").func)
    for sketch in CPU_SEARCH.sketches(dag, replace(HARDWARE, dot_units=()), CONFIG):
        assert not any(isinstance(step, DotProducts) for step in sketch.steps)


def test_a_matrix_that_multiplies_itself_has_no_groups() -> None:
    x, k = te.placeholder((8, 16), "bfloat16", "x"), te.reduce_axis((0, 16), "k")
    wide = "float32"
    out = te.compute(
        (8, 8), lambda i, j: te.sum(x[i, k].astype(wide) * x[j, k].astype(wide), axis=k), "out"
    )
    for sketch in CPU_SEARCH.sketches(read_dag(te.create_prim_func([x, out])), HARDWARE, CONFIG):
        assert not any(isinstance(step, DotProducts) for step in sketch.steps)


def test_groups_form_along_the_reduction() -> None:
    dag = read_dag(workload("int8_conv2d").func)
    stage = dag.stages["conv"]
    found = dot_operands(dag, "conv", 4)
    assert found is not None
    assert stage.axes[found.axis].size == 8  # channels
    assert stage.reads[found.lanes].buffer == "weight"
    assert found.dim == 2


@given(
    panels=st.integers(1, 3),
    width=st.integers(1, 4),
    groups=st.integers(1, 3),
    elements=st.sampled_from([2, 4]),
    before=st.integers(1, 2),
)
def test_a_grouped_layout_moves_each_element_to_its_place(
    panels: int, width: int, groups: int, elements: int, before: int
) -> None:
    shape = (before, groups * elements, panels * width)
    array = np.arange(np.prod(shape)).reshape(shape)
    layout = PackedLayout(width, 1, elements)
    packed = layout.pack(array)
    assert packed.shape == layout.shape(shape)
    for index in np.ndindex(*shape):
        assert packed[tuple(layout.index(index))] == array[index]


@given(extent=st.integers(1, 200), most=st.sampled_from([4, 8, 16]))
def test_widths_cover_an_extent(extent: int, most: int) -> None:
    found = widths(extent, most)
    assert sum(found) == extent
    assert max(found) <= most
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("instruction", DOT_INSTRUCTIONS, ids=lambda each: each.name)
def test_a_function_is_known_by_its_name(instruction: Any) -> None:
    shared, lanes = instruction.operands
    function = scalar_function(instruction.name, shared, lanes)
    assert function_of(function.name) == function
    assert f"@{function.name}(" in llvm_text([function], lambda _: False)


@pytest.mark.parametrize("instruction", DOT_INSTRUCTIONS, ids=lambda each: each.name)
def test_few_lanes_use_a_part_of_a_register(instruction: Any) -> None:
    function = scalar_function(instruction.name, *instruction.operands)
    text = llvm_text([function], lambda _: True)
    assert re.search(r"call <4 x (i32|float)> @llvm\.(x86|aarch64)\.", text)


@pytest.mark.parametrize(
    ("name", "processor", "instruction", "present"),
    [
        ("bfloat16_matmul", "znver4", "vdpbf16ps", True),
        ("bfloat16_matmul", "skylake-avx512", "vdpbf16ps", False),
        ("int8_matmul", "cascadelake", "vpdpbusd", True),
        ("int8_matmul", "alderlake", "vpdpbusd", True),  # AVX-VNNI
        ("int8_matmul", "znver3", "vpdpbusd", False),
    ],
)
def test_the_machine_code_has_the_instruction_where_the_processor_does(
    name: str, processor: str, instruction: str, present: bool
) -> None:
    (sketch, *_) = sketches(name, (1,))
    drawn = sample(sketch, 256, np.random.default_rng(3))
    whole = (
        drawn.values(next(d.name for d in sketch.decisions if d.name.endswith(".j")))[:, -1] >= 8
    )
    allowed = legal(build_nest(drawn), HARDWARE, CONFIG) & whole
    program = drawn.program(int(np.flatnonzero(allowed)[0]))
    code = compiled(workload(name).func, program, processor)
    assert (instruction in code) == present
    assert "call" not in code or "ansor_dot" not in code
