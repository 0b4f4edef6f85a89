"""Lowered programs compute what NumPy computes, and lowering leaves its input alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from definitions import FLOAT32, NAMES, sketches, workload
from sampling import sample

from ansor.config import SketchConfig
from ansor.errors import LoweringError
from ansor.lowering.lower import lower
from ansor.program.nest import build_nest
from ansor.program.program import Program
from ansor.program.sketch import Population
from ansor.program.steps import Inline, Unroll

PROGRAMS_PER_SKETCH = 3
RTOL = 1e-4  # of the largest value
SMALL = SketchConfig(unroll_steps=(0, 16))
PACKING = SketchConfig(unroll_steps=(0,), min_pack_reuse=1, min_pack_bytes=1)
CASES = [*((name, SMALL) for name in FLOAT32), ("matmul_relu", PACKING), ("conv2d", PACKING)]
MOST_UNROLLED = 48  # statements: more take the compiler seconds


def small_programs(population: Population) -> list[Program]:
    """The first few programs whose register tile is small enough to compile in no time."""
    nest = build_nest(population)
    statements = np.ones(len(population), dtype=np.int64)
    for own in nest.stages.values():
        statements = np.maximum(statements, np.where(own.unrolled, own.extents, 1).prod(axis=0))
    rows = np.flatnonzero(statements <= MOST_UNROLLED)[:PROGRAMS_PER_SKETCH]
    return [population.program(int(row)) for row in rows]


def run(func: Any, inputs: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Compiles and runs a function whose last argument is its output."""
    module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    out = tvm.runtime.tensor(np.full(shape, np.nan, dtype=np.float32))
    tvm.compile(module, "llvm")["main"](*[tvm.runtime.tensor(x) for x in inputs], out)
    return out.numpy()


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    assert np.abs(found - expected).max() <= RTOL * np.abs(expected).max()


@pytest.mark.parametrize(("name", "config"), CASES)
def test_sampled_programs_compute_the_right_answer(name: str, config: SketchConfig) -> None:
    definition, rng = workload(name), np.random.default_rng(0)
    inputs = definition.inputs(rng)
    expected = definition.reference(*inputs)
    for sketch in sketches(name, config):
        programs = small_programs(sample(sketch, 64, rng))
        assert programs
        for program in programs:
            found = run(lower(definition.func, program), inputs, expected.shape)
            assert_close(found, expected)


@pytest.mark.parametrize("name", NAMES)
def test_lowering_never_alters_the_function(name: str) -> None:
    func = workload(name).func
    before = func.script()
    for sketch in sketches(name):
        lower(func, sample(sketch, 1, np.random.default_rng(1)).program(0))
    assert func.script() == before


def test_a_program_without_steps_is_the_definition_itself() -> None:
    func = workload("softmax").func
    assert lower(func, Program()) is func


def test_the_same_program_gives_the_same_function() -> None:
    func = workload("conv2d").func
    program = sample(sketches("conv2d")[0], 1, np.random.default_rng(2)).program(0)
    assert lower(func, program).script() == lower(func, program).script()


def test_a_step_that_does_not_apply_is_named() -> None:
    func = workload("matmul").func
    program = Program("bad", (Inline("C"),), {})
    with pytest.raises(LoweringError, match=r"Inline\(stage='C'\)"):
        lower(func, program)


@pytest.mark.parametrize(
    "program",
    [
        Program("bad", (Inline("nowhere"),), {}),
        Program("bad", (Unroll("C", "missing"),), {}),
    ],
)
def test_a_program_of_another_definition_is_refused(program: Program) -> None:
    with pytest.raises(LoweringError):
        lower(workload("matmul").func, program)
