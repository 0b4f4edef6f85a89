"""Programs with equal signatures have the same lowered function."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import tvm_ffi
from definitions import HARDWARE, sketches, workload
from gpu import GPU, gpu_sketches, legal_sample
from sampling import sample
from test_layout import NARROW
from test_nest_agrees import CASES
from test_prefetch_constants import CASES as WITH_CONSTANTS
from test_prefetch_constants import sketches as with_constant

from ansor.config import FULL, SketchConfig
from ansor.cost_model.model import CostModel
from ansor.lowering.lower import lower
from ansor.program.sketch import Population, Sketch
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.targets.cuda.machine import Gpu
from ansor.targets.cuda.search import CUDA_SEARCH
from ansor.targets.machine import Machine

PROGRAMS = 64  # of each sketch; one decision of each is changed
GPU_NAMES = ("softmax", "matmul_relu", "row_sum", "conv2d", "norm")


def changed(population: Population, rng: np.random.Generator) -> Population:
    """Another choice of one decision in every program, except decisions on locations. Two locations
    may only differ by loops of one iteration."""
    choices = population.choices.copy()
    names = [decision.name for decision in population.sketch.decisions]
    columns = [i for i, name in enumerate(names) if not name.endswith(".location")]
    for row in choices:
        column = rng.choice(columns)
        row[column] = rng.integers(population.sketch.decisions[column].size)
    return Population(population.sketch, choices)


def model_for(machine: Machine) -> CostModel:
    search = CUDA_SEARCH if isinstance(machine, Gpu) else CPU_SEARCH
    return CostModel(machine, search, FULL.cost_model, FULL.sketch)


def same(
    population: Population, machine: Machine, rng: np.random.Generator
) -> Iterator[Population]:
    """Pairs of other choices that count as the same program."""
    model = model_for(machine)
    pair = population, changed(population, rng)
    signatures = [model.estimate(own).signature for own in pair]
    equal = (signatures[0] == signatures[1]).all(axis=1)
    different = (pair[0].choices != pair[1].choices).any(axis=1)
    for row in np.flatnonzero(equal & different):
        yield Population(population.sketch, np.stack([own.choices[row] for own in pair]))


def assert_same(name: str, pairs: Iterator[Population]) -> None:
    func = workload(name).func
    for pair in pairs:
        one, other = (lower(func, pair.program(row)) for row in (0, 1))
        text = f"{pair.program(0).values} and {pair.program(1).values}"
        assert tvm_ffi.structural_equal(one, other), text


@pytest.mark.parametrize(("name", "config"), CASES)
def test_equal_signatures_mean_the_same_program(name: str, config: SketchConfig) -> None:
    rng = np.random.default_rng(0)
    for sketch in sketches(name, config):
        population = sample(sketch, PROGRAMS, rng)
        assert_same(name, same(population, HARDWARE, rng))


@pytest.mark.parametrize("name", WITH_CONSTANTS)
def test_the_same_with_constants(name: str) -> None:
    rng = np.random.default_rng(0)
    for sketch in with_constant(name):
        assert_same(name, same(sample(sketch, PROGRAMS, rng), NARROW, rng))


@pytest.mark.parametrize("name", GPU_NAMES)
def test_equal_signatures_mean_the_same_kernels(name: str) -> None:
    rng = np.random.default_rng(0)
    for sketch in gpu_sketches(name):
        assert_same(name, same(legal_sample(sketch, PROGRAMS), GPU, rng))


def signatures(sketch: Sketch, machine: Machine, ending: str) -> tuple[int, int]:
    """Programs that differ only in the decision with this ending: their number, and the number of
    signatures."""
    (hole,) = (d for d in sketch.decisions if d.name.endswith(ending))
    choices = sample(sketch, 1, np.random.default_rng(0)).choices.repeat(hole.size, axis=0)
    choices[:, sketch.column[hole.name]] = np.arange(hole.size)
    found = model_for(machine).estimate(Population(sketch, choices))
    return hole.size, len(np.unique(found.signature, axis=0))


@pytest.mark.parametrize("name", WITH_CONSTANTS)
def test_widths_of_panels_tell_programs_apart(name: str) -> None:
    for sketch in with_constant(name):
        size, told = signatures(sketch, NARROW, ".packed")
        assert told == size > 1


@pytest.mark.parametrize(
    ("name", "ending"),
    [("softmax", ".threads"), ("matmul_relu", ".threads"), ("matmul_relu", "A.shared.pad")],
)
def test_decisions_of_kernels_tell_programs_apart(name: str, ending: str) -> None:
    found = [s for s in gpu_sketches(name) if any(d.name.endswith(ending) for d in s.decisions)]
    assert found
    for sketch in found:
        size, told = signatures(sketch, GPU, ending)
        assert told == size > 1
