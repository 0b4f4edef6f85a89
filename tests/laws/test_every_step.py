"""Every class of steps: programs with it are lowered, nested, shown, encoded and decoded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import gpu
import numpy as np
import pytest
from definitions import HARDWARE, NAMES, sketches, tile_sketches, workload
from hand_schedules import tiled_matmul

from ansor.annotate.complete import complete
from ansor.annotate.sample import sample
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.lowering.lower import lower
from ansor.lowering.steps.apply import apply
from ansor.program.codec import decode, encode
from ansor.program.nest import build_nest
from ansor.program.pseudo_code import show_program, show_sketch
from ansor.program.sketch import Sketch
from ansor.program.steps import Phase, Step
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.targets.cpu.search import CPU_SEARCH

PROGRAMS = 4  # of each sketch
FOR_GPU = ("matmul", "matmul_relu", "softmax", "row_sum", "conv2d", "max_pool2d", "norm")
PREFETCHED = SketchConfig(min_prefetch_bytes=0)  # constants of any size may be prefetched
SMALL_CACHES = replace(HARDWARE, cache_bytes=(256, 1 << 10, 1 << 20))  # operands are large
BY_HAND = tiled_matmul(32, 48, 24)
KINDS = sorted(kind for kind, made in Step.kinds.items() if made.__module__.startswith("ansor."))


def all_sketches() -> Iterator[tuple[Any, Sketch, bool]]:
    """Definitions with their sketches, and whether those are for a GPU."""
    for name in NAMES:
        for sketch in sketches(name):
            yield workload(name).func, sketch, False
    for sketch in tile_sketches("tiled_matmul"):
        yield workload("tiled_matmul").func, sketch, False
    for name in ("bfloat16_matmul", "int8_conv2d"):
        weighted = read_dag(workload(name).func, constants=[1])
        for sketch in CPU_SEARCH.sketches(weighted, HARDWARE, SketchConfig()):
            yield workload(name).func, sketch, False
    func = workload("matmul").func
    for state in generate(read_dag(func, constants=[1]), HARDWARE, CPU_RULES, PREFETCHED):
        yield func, complete(state, HARDWARE, PREFETCHED), False
    for sketch in CPU_SEARCH.sketches(read_dag(func), SMALL_CACHES, SketchConfig()):
        yield func, sketch, False
    for name in FOR_GPU:
        for sketch in gpu.gpu_sketches(name):
            yield workload(name).func, sketch, True
    for name in ("relu", "conv"):
        yield gpu.tensor_product(name), gpu.tensor_sketch(name), True
    yield BY_HAND.definition, BY_HAND.schedule.sketch(read_dag(BY_HAND.definition)), False


@cache
def with_step(kind: str) -> tuple[Any, Sketch, bool]:
    """A sketch that has such a step."""
    for func, sketch, for_gpu in all_sketches():
        if any(type(step).__name__ == kind for step in sketch.steps):
            return func, sketch, for_gpu
    raise AssertionError(f"no definition has a sketch with {kind}")


def population(kind: str) -> Any:
    _, sketch, for_gpu = with_step(kind)
    if for_gpu:
        return gpu.legal_sample(sketch, PROGRAMS)
    return sample(sketch, PROGRAMS, np.random.default_rng(0))


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_lowered(kind: str) -> None:
    func, _, _ = with_step(kind)
    drawn = population(kind)
    assert len(drawn) > 0
    for row in range(len(drawn)):
        scheduled = lower(func, drawn.program(row), BY_HAND.schedule)
        assert not scheduled.body.same_as(func.body)


@pytest.mark.parametrize("kind", KINDS)
def test_it_has_loops_for_every_program(kind: str) -> None:
    drawn = population(kind)
    nest = build_nest(drawn)
    assert set(nest.stages) == set(drawn.sketch.dag.order)
    assert all((stage.extents >= 1).all() for stage in nest.stages.values())
    assert len(nest.signature) == len(drawn)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_shown(kind: str) -> None:
    _, sketch, _ = with_step(kind)
    assert sketch.dag.order[-1] in show_sketch(sketch)
    assert sketch.dag.order[-1] in show_program(population(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_encoded_and_decoded(kind: str) -> None:
    program = population(kind).program(0)
    assert decode(encode(program)) == program


@pytest.mark.parametrize("kind", KINDS)
def test_its_phase_is_kept(kind: str) -> None:
    """Steps stand in the order of their phases, which interpreters rely on."""
    _, sketch, _ = with_step(kind)
    phases = [step.phase for step in sketch.steps]
    assert phases == sorted(phases)
    assert Step.kinds[kind].phase in Phase


@pytest.mark.parametrize("kind", KINDS)
def test_the_lowering_has_a_handler(kind: str) -> None:
    assert apply.dispatch(Step.kinds[kind]) is not apply.dispatch(object)
