"""Pseudo-code of sketches and programs."""

from __future__ import annotations

import re

import numpy as np
import pytest
from definitions import NAMES, sketches
from gpu import gpu_sketches, legal_sample, tensor_sketch
from sampling import sample

from ansor.program.nest import build_nest
from ansor.program.pseudo_code import show_program, show_sketch


@pytest.mark.parametrize("name", NAMES)
def test_every_stage_of_a_sketch_appears_once(name: str) -> None:
    for sketch in sketches(name):
        lines = [line.strip() for line in show_sketch(sketch).splitlines()]
        found = [line.split(" <-")[0] for line in lines if " <-" in line]
        assert sorted(found) == sorted(sketch.dag.stages)


@pytest.mark.parametrize("name", NAMES)
def test_the_loops_of_a_program_multiply_to_its_iterations(name: str) -> None:
    rng = np.random.default_rng(0)
    for sketch in sketches(name):
        population = sample(sketch, 4, rng)
        nest = build_nest(population)
        for row in range(len(population)):
            counted = iterations(show_program(population, row))
            expected = {n: int(s.extents[:, row].prod()) for n, s in nest.stages.items()}
            assert counted == expected


def iterations(text: str) -> dict[str, int]:
    """Iterations of each statement, from the headers above it."""
    open_loops: list[tuple[int, int]] = []  # indentation, extent
    found = {}
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        open_loops = [loop for loop in open_loops if loop[0] < indent]
        if line.endswith(":"):
            extents = re.findall(r"\d+", line.rpartition(" in ")[2])
            open_loops.append((indent, int(np.prod([int(e) for e in extents]))))
        elif " <-" in line:
            found[line.strip().split(" <-")[0]] = int(np.prod([e for _, e in open_loops]))
    return found


def test_a_fused_consumer_stands_after_the_tile_it_reads() -> None:
    rng = np.random.default_rng(0)
    fused = next(s for s in sketches("matmul_relu") if s.roles.fused)
    text = show_program(sample(fused, 1, rng))
    (consumer,) = fused.roles.fused
    assert text.index(f"{fused.roles.fused[consumer].stage} <-") < text.index(f"{consumer} <-")


@pytest.mark.parametrize("name", NAMES)
def test_every_stage_of_a_gpu_sketch_appears_once(name: str) -> None:
    for sketch in gpu_sketches(name):
        lines = [line.strip() for line in show_sketch(sketch).splitlines()]
        found = [line.split(" <-")[0] for line in lines if " <-" in line]
        assert sorted(found) == sorted(sketch.dag.stages)


def test_kernels_say_what_their_loops_become() -> None:
    text = show_sketch(gpu_sketches("matmul_relu")[-1])
    heads = [line.split(" in ")[0].strip() for line in text.splitlines() if " in " in line]
    tiles = ["block i.0", "block j.0", "vthread i.1", "vthread j.1", "thread i.2", "thread j.2"]
    assert heads[:6] == tiles
    assert heads.count("thread c0.0") == 2  # two operands are fetched inside
    softmax = show_sketch(gpu_sketches("softmax")[0])
    assert softmax.startswith("block i0.0 in 16:")
    assert softmax.count("  thread k.0") == 2
    tensor = show_program(legal_sample(tensor_sketch("plain"), 1))
    assert "C <-add- C.a.fragment, C.b.fragment" in tensor
    assert "thread c0.0" in tensor
