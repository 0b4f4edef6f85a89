"""Prefetched weights: all of the next part, nothing else, and results stay right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from definitions import dag, workload
from fetching import addresses, fetched
from hypothesis import given
from hypothesis import strategies as st
from sampling import sample
from test_layout import NARROW, constant_of
from test_lower import assert_close, run
from tvm import tirx

from ansor.annotate.complete import complete
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.features.profile import profile
from ansor.lowering.lower import lower
from ansor.lowering.prefetch.constant_operands import _place
from ansor.program.layout import packed_arrays
from ansor.program.nest import build_nest
from ansor.program.program import Program
from ansor.program.sketch import Population, Sketch
from ansor.program.steps import Prefetch
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.targets.build import compile_function

CASES = ["matmul", "matmul_relu", "conv2d", "conv2d_stride2"]
CONFIG = SketchConfig(
    unroll_steps=(0,), min_prefetch_bytes=1, min_prefetch_part=256, min_prefetch_run=256
)


def sketches(name: str, config: SketchConfig = CONFIG) -> list[Sketch]:
    """Those of a definition whose second parameter is a constant."""
    states = generate(read_dag(workload(name).func, constants=[1]), NARROW, CPU_RULES, config)
    return [complete(state, NARROW, config) for state in states]


def programs(sketch: Sketch, count: int, prefetch: bool = True) -> Population:
    """Random programs that are asked to prefetch, or not to."""
    (column,) = (i for i, d in enumerate(sketch.decisions) if d.name.endswith(".prefetch"))
    choices = sample(sketch, count, np.random.default_rng(0)).choices.copy()
    choices[:, column] = int(prefetch)
    return Population(sketch, choices)


def fetching(population: Population) -> np.ndarray:
    """`[P] bool`: which of them do, as the nest has it."""
    (step,) = (s for s in population.sketch.steps if isinstance(s, Prefetch))
    return profile(build_nest(population))[step.stage].prefetched.exists


def fetches(func: tirx.PrimFunc) -> int:
    """Number of statements that prefetch the constant."""
    return sum(buffer.same_as(func.params[1]) for buffer in fetched(func))


@pytest.mark.parametrize("name", CASES)
def test_the_nest_knows_what_is_fetched(name: str) -> None:
    for sketch in sketches(name):
        population = programs(sketch, 1000)
        found = fetching(population)
        assert found.any()
        for row in [*np.flatnonzero(found)[:10], *np.flatnonzero(~found)[:30]]:
            lowered = lower(workload(name).func, population.program(int(row)))
            assert (fetches(lowered) > 0) == found[row]


@pytest.mark.parametrize("name", CASES)
def test_results_stay_right(name: str) -> None:
    definition, rng = workload(name), np.random.default_rng(0)
    inputs = definition.inputs(rng)
    expected = definition.reference(*inputs)
    for sketch in sketches(name):
        population = programs(sketch, 1000)
        for row in np.flatnonzero(fetching(population))[:6]:
            program = population.program(int(row))
            named = dict(zip(dag(name).buffers, inputs, strict=False))
            lowered = lower(definition.func, program)
            assert fetches(lowered)
            found = run(lowered, list(packed_arrays(program, named).values()), expected.shape)
            assert_close(found, expected)


def test_nothing_is_fetched_unless_asked_for() -> None:
    for sketch in sketches("matmul"):
        population = programs(sketch, 16, prefetch=False)
        for row in range(len(population)):
            assert not fetches(lower(workload("matmul").func, population.program(row)))


def test_small_constants_and_other_operands_are_left_alone() -> None:
    small = replace(CONFIG, min_prefetch_bytes=1 << 18)
    plain = generate(dag("matmul"), NARROW, CPU_RULES, CONFIG)
    made = [*sketches("matmul", small), *(complete(s, NARROW, CONFIG) for s in plain)]
    assert made
    assert not any(isinstance(step, Prefetch) for sketch in made for step in sketch.steps)


def panels(**others: tuple[int, ...]) -> Program:
    """Of a matrix product whose constant is packed into four panels, by default all rows of a tile
    at once and panel after panel."""
    (sketch,) = [s for s in sketches("matmul") if len(s.dag.stages) == 1]
    rows, depth, columns = sizes()
    values = {
        "C.i": (1, 1, 1, rows),
        "C.j": (4, 1, 1, columns // 4),
        "C.k": (1, depth),
        "C.parallel": (0,),
        "C.unroll": (0,),
        f"C.{constant_of('matmul')}.packed": (columns // 4,),
        "C.prefetch": (1,),
    }
    changed = {f"C.{name}": value for name, value in others.items()}
    return replace(programs(sketch, 1).program(0), values=values | changed)


def sizes() -> tuple[int, int, int]:
    """Rows, depth and columns of the matrix product."""
    (rows, depth), (_, columns) = (tuple(map(int, t.shape)) for t in workload("matmul").tensors[:2])
    return rows, depth, columns


def test_the_next_part_is_asked_for_once_all_over() -> None:
    """Each panel is read by many tiles."""
    rows, depth, columns = sizes()
    func = lower(workload("matmul").func, panels(i=(1, rows // 2, 1, 2)))
    elements = columns // 4 * depth
    for number in range(4):
        expected = set(range((number + 1) * elements, (number + 2) * elements, 16))
        assert addresses(func, {"j_0": number}) == expected


@pytest.mark.parametrize("tiles", [(1, 4), (2, 2), (4, 1)])
def test_what_is_read_once_is_asked_for_at_a_distance(tiles: tuple[int, int]) -> None:
    _, depth, columns = sizes()
    func = lower(workload("matmul").func, panels(j=(*tiles, 1, columns // 4)))
    distance = CONFIG.prefetch_distance // 4
    lines = set(range(distance, distance + columns * depth, 16))
    found = addresses(func, {})
    assert lines <= found
    assert max(found) < max(lines) + columns * depth


def test_sums_stay_in_registers() -> None:
    """As without fetches, which are instructions, no calls: each is stored once."""
    rows, _, _ = sizes()
    tiles, stores = (1, 4, 1, rows // 4), []
    for prefetch in (0, 1):
        program = panels(i=tiles, parallel=(2,), prefetch=(prefetch,))
        code = str(
            compile_function(lower(workload("matmul").func, program), "llvm").inspect_source("ll")
        )
        assert ("call void @llvm.prefetch" in code) == bool(prefetch)
        assert "call void @ansor_fetch" not in code
        stores.append(code.count("store <"))
    assert stores[0] == stores[1] > 0


@given(
    extents=st.lists(st.integers(1, 64), min_size=1, max_size=4),
    most=st.floats(0.01, 1000),
)
def test_fetches_are_as_far_apart_as_they_should_be(extents: list[int], most: float) -> None:
    number, apart = _place(extents, most)
    inside = int(np.prod(extents[number + 1 :], dtype=int))
    assert extents[number] % apart == 0
    assert apart == 1 or inside * apart <= most
    assert inside <= max(most, 1)
