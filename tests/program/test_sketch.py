"""Sketches and populations."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from definitions import NAMES, sketches
from hypothesis import given
from hypothesis import strategies as st
from sampling import sample

from ansor.program.program import Program
from ansor.program.sketch import Sketch, concatenate
from ansor.program.steps import Unroll

all_sketches = st.sampled_from(NAMES).flatmap(lambda name: st.sampled_from(sketches(name)))


@given(all_sketches, st.integers(0, 2**32 - 1))
def test_row_of_is_the_inverse_of_program(sketch: Sketch, seed: int) -> None:
    population = sample(sketch, 2, np.random.default_rng(seed))
    for row in range(2):
        found = sketch.row_of(population.program(row))
        assert found is not None
        assert found.dtype == np.int32
        assert (found == population.choices[row]).all()


def test_a_program_of_another_sketch_has_no_row() -> None:
    first, second, *_ = sketches("conv2d")
    program = sample(first, 1, np.random.default_rng(0)).program(0)
    assert second.row_of(program) is None
    assert first.row_of(Program()) is None


def test_a_program_outside_the_tables_has_no_row() -> None:
    sketch = sketches("matmul")[0]
    program = sample(sketch, 1, np.random.default_rng(0)).program(0)
    hole = next(step.hole for step in sketch.steps if isinstance(step, Unroll))
    assert sketch.row_of(replace(program, values={**program.values, hole: (17,)})) is None


@pytest.mark.parametrize("name", NAMES)
def test_names_of_sketches_differ_and_space_is_the_product(name: str) -> None:
    found = sketches(name)
    assert len({sketch.name for sketch in found}) == len(found)
    for sketch in found:
        assert sketch.space_size == int(np.prod([float(d.size) for d in sketch.decisions]))
        assert list(sketch.column) == [decision.name for decision in sketch.decisions]


_PRINT_NAMES = """
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.workloads import build
for sketch in CPU_SEARCH.sketches(read_dag(build("conv2d").func), Hardware(), SketchConfig()):
    print(sketch.name)
"""


def test_names_are_the_same_in_another_process() -> None:
    def names(seed: str) -> list[str]:
        environment = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", _PRINT_NAMES]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert names("1") == names("2") != []


def test_take_and_concatenate() -> None:
    population = sample(sketches("softmax")[0], 6, np.random.default_rng(0))
    halves = [population.take(slice(0, 3)), population.take([3, 4, 5])]
    assert [len(half) for half in halves] == [3, 3]
    assert (concatenate(halves).choices == population.choices).all()
    hole = population.sketch.decisions[0].name
    assert (population.take([4]).values(hole) == population.values(hole)[4]).all()
