"""Packed constants: loops, results and memory strides stay right, whatever the width."""

from __future__ import annotations

import numpy as np
import pytest
from definitions import HARDWARE, dag, workload
from hypothesis import given
from hypothesis import strategies as st
from sampling import sample
from test_lower import assert_close, run, small_programs
from test_nest_agrees import computed_loops, lowered_loops

from ansor.annotate.complete import complete
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.features.profile import profile
from ansor.lowering.lower import lower, schedule
from ansor.program.layout import PackedLayout, packed_arrays, packings
from ansor.program.nest import build_nest
from ansor.program.sketch import Sketch
from ansor.program.steps import LayoutRewrite
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.targets.cpu.machine import Hardware

CASES = ["matmul", "matmul_relu", "conv2d", "conv2d_stride2"]
CONFIG = SketchConfig(unroll_steps=(0,))
NARROW = Hardware(cores=2, vector_bytes=16)  # four lanes: the small definitions have widths then


def constant_of(name: str) -> str:
    """The operand that the vectorised axis runs along: the second parameter."""
    return list(dag(name).buffers)[1]


def sketches(name: str, hardware: Hardware = NARROW) -> list[Sketch]:
    states = generate(read_dag(workload(name).func, constants=[1]), hardware, CPU_RULES, CONFIG)
    return [complete(state, hardware, CONFIG) for state in states]


@given(
    outer=st.integers(1, 4), width=st.integers(1, 5), rest=st.lists(st.integers(1, 3), max_size=3)
)
def test_packing_moves_every_element_to_its_place(outer: int, width: int, rest: list[int]) -> None:
    array = np.arange(np.prod(rest, dtype=int) * outer * width).reshape(*rest, outer * width)
    packed = PackedLayout(width).pack(array)
    assert packed.flags.c_contiguous
    for index in np.ndindex(*array.shape):
        *others, last = index
        assert packed[(last // width, *others, last % width)] == array[index]


@pytest.mark.parametrize("name", CASES)
def test_every_tiled_sketch_decides_on_a_width(name: str) -> None:
    for sketch in sketches(name):
        (step,) = [s for s in sketch.steps if isinstance(s, LayoutRewrite)]
        widths = sketch.decisions[sketch.column[step.hole]].table[:, 0].tolist()
        assert step.buffer == constant_of(name)
        assert widths[0] == 0
        assert len(widths) > 1
        assert all(width % 4 == 0 for width in widths)


def test_nothing_is_packed_without_constants() -> None:
    states = generate(dag("conv2d"), HARDWARE, CPU_RULES, CONFIG)
    assert not any(isinstance(step, LayoutRewrite) for state in states for step in state.steps)


@pytest.mark.parametrize("name", CASES)
def test_loops_agree(name: str) -> None:
    rng = np.random.default_rng(0)
    for sketch in sketches(name):
        population = sample(sketch, 8, rng)
        nest = build_nest(population)
        for row in range(len(population)):
            replay = schedule(workload(name).func, population.program(row))
            for stage in sketch.dag.stages:
                assert lowered_loops(replay, stage) == computed_loops(nest, stage, row)


@pytest.mark.parametrize("name", CASES)
def test_packed_programs_compute_the_right_answer(name: str) -> None:
    definition, rng = workload(name), np.random.default_rng(0)
    inputs = definition.inputs(rng)
    expected = definition.reference(*inputs)
    packed = 0
    for sketch in sketches(name):
        for program in small_programs(sample(sketch, 64, rng)):
            named = dict(zip(dag(name).buffers, inputs, strict=False))
            arrays = list(packed_arrays(program, named).values())
            found = run(lower(definition.func, program), arrays, expected.shape)
            assert_close(found, expected)
            packed += bool(packings(program))
    assert packed


def test_strides_are_those_of_the_packed_array() -> None:
    """Against the addresses that NumPy gives: one step of each loop from the origin."""
    (sketch,) = [s for s in sketches("matmul") if len(s.dag.stages) == 1]
    population = sample(sketch, 64, np.random.default_rng(1))
    stage = build_nest(population).stages["C"]
    shape = dag("matmul").buffers[constant_of("matmul")].shape
    address = np.arange(np.prod(shape)).reshape(shape)
    profiled = profile(build_nest(population))["C"]
    read = next(a for a in profiled.accesses if a.buffer.name == constant_of("matmul"))
    for row in range(len(population)):
        plain = PackedLayout(shape[-1])
        layout = packings(population.program(row)).get(constant_of("matmul"), plain)
        width, place = (
            layout.width,
            np.argsort(layout.pack(address).ravel()),
        )  # element to its place in memory
        for number, loop in enumerate(profiled.active):
            if stage.extents[loop, row] == 1:
                continue
            k = int(stage.steps[2].get(loop, np.zeros(64))[row])
            j = int(stage.steps[1].get(loop, np.zeros(64))[row])
            moved = place[k * shape[-1] + j]
            aligned = (j < width and width % max(j, 1) == 0) or j % width == 0
            if aligned:
                assert read.strides.get(number, np.zeros(64))[row] == moved


def test_footprints_do_not_depend_on_the_layout() -> None:
    (sketch,) = [s for s in sketches("matmul") if len(s.dag.stages) == 1]
    population = sample(sketch, 64, np.random.default_rng(2))
    plain = population.choices.copy()
    plain[:, sketch.column[f"C.{constant_of('matmul')}.packed"]] = 0
    one = profile(build_nest(population))["C"].accesses
    other = profile(build_nest(type(population)(sketch, plain)))["C"].accesses
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a.footprint, b.footprint)
