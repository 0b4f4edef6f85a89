"""One matmul program, 32 x 48 x 24, whose loops are known: every figure was worked out on paper.

i = 2 x 2 x 2 x 4, j = 1 x 3 x 1 x 16, k = 6 x 4. Loops with more than one iteration, outermost
first: i0=2 i1=2 j1=3 k0=6 i2=2 k1=4 i3=4 j3=16 (i0 is fused with j0 and parallel, i3 is unrolled,
j3 vectorised).
"""

from __future__ import annotations

import numpy as np
import pytest
from definitions import sketches
from rows import population_of

from ansor.annotate.sample import sample
from ansor.features.profile import AccessProfile, StageProfile, profile
from ansor.program.nest import build_nest

TILES = {
    "C.i": (2, 2, 2, 4),
    "C.j": (1, 3, 1, 16),
    "C.k": (6, 4),
    "C.parallel": (2,),
    "C.unroll": (16,),
}
A, B, C = range(3)
I0, I1, J1, K0, I2, K1, I3, J3 = range(8)


@pytest.fixture(scope="module")
def matmul() -> StageProfile:
    return profile(build_nest(population_of(sketches("matmul")[0], [TILES])))["C"]


def per_loop(access: AccessProfile) -> dict[int, float]:
    return {loop: float(stride[0]) for loop, stride in access.strides.items() if stride[0]}


def test_loops(matmul: StageProfile) -> None:
    assert matmul.extents[:, 0].tolist() == [2, 2, 3, 6, 2, 4, 4, 16]
    assert matmul.outer[:, 0].tolist() == [1, 2, 4, 12, 72, 144, 576, 2304, 36864]
    assert matmul.iterations.tolist() == [32 * 48 * 24]
    assert matmul.parallel.tolist() == [2]
    assert matmul.vector == J3


def test_accesses(matmul: StageProfile) -> None:
    assert [a.buffer.name for a in matmul.accesses] == ["A", "B", "C"]
    assert [a.is_write for a in matmul.accesses] == [False, False, True]


@pytest.mark.parametrize(
    ("number", "footprint"),
    [
        (A, [32 * 24, 16 * 24, 8 * 24, 8 * 24, 8 * 4, 4 * 4, 4, 1, 1]),
        (B, [24 * 48, 24 * 48, 24 * 48, 24 * 16, 4 * 16, 4 * 16, 16, 16, 1]),
        (C, [32 * 48, 16 * 48, 8 * 48, 8 * 16, 8 * 16, 4 * 16, 4 * 16, 16, 1]),
    ],
)
def test_footprints(matmul: StageProfile, number: int, footprint: list[int]) -> None:
    access = matmul.accesses[number]
    assert access.footprint[:, 0].tolist() == footprint
    assert access.bytes[:, 0].tolist() == [4 * elements for elements in footprint]


@pytest.mark.parametrize(
    ("number", "strides"),
    [
        (A, {I0: 16 * 24, I1: 8 * 24, I2: 4 * 24, I3: 24, K0: 4, K1: 1}),
        (B, {K0: 4 * 48, K1: 48, J1: 16, J3: 1}),
        (C, {I0: 16 * 48, I1: 8 * 48, I2: 4 * 48, I3: 48, J1: 16, J3: 1}),
    ],
)
def test_strides(matmul: StageProfile, number: int, strides: dict[int, float]) -> None:
    assert per_loop(matmul.accesses[number]) == strides


@pytest.mark.parametrize(
    ("number", "runs"),
    [
        (A, [32 * 24, 16 * 24, 8 * 24, 8 * 24, 4, 4, 1, 1, 1]),
        (B, [24 * 48, 24 * 48, 24 * 48, 16, 16, 16, 16, 16, 1]),
        (C, [32 * 48, 16 * 48, 8 * 48, 16, 16, 16, 16, 16, 1]),
    ],
)
def test_runs(matmul: StageProfile, number: int, runs: list[int]) -> None:
    assert matmul.accesses[number].run[:, 0].tolist() == runs


def test_lines_are_filled_run_by_run(matmul: StageProfile) -> None:
    # Inside k0, A is 8 runs of 4 floats: 8 lines of 64 bytes. B is 4 runs of 16: 4 lines.
    assert matmul.accesses[A].lines(64)[K0 + 1, 0] == 8
    assert matmul.accesses[B].lines(64)[K0 + 1, 0] == 4
    # A whole is one run: 768 floats, 48 lines.
    assert matmul.accesses[A].lines(64)[0, 0] == 48


def test_bytes_add_up_over_accesses(matmul: StageProfile) -> None:
    assert matmul.bytes[0, 0] == 4 * (32 * 24 + 24 * 48 + 32 * 48)
    assert matmul.bytes[-1, 0] == 4 * 3


def test_programs_of_a_population_do_not_mix() -> None:
    other = {"C.i": (1, 1, 1, 32), "C.j": (48, 1, 1, 1), "C.k": (1, 24), "C.parallel": (0,)}
    sketch = sketches("matmul")[0]
    both = profile(build_nest(population_of(sketch, [TILES, other])))["C"]
    alone = profile(build_nest(population_of(sketch, [other])))["C"]
    assert both.iterations.tolist() == [36864, 36864]
    for mine, lone in zip(both.accesses, alone.accesses, strict=True):
        assert mine.footprint[0, 1] == lone.footprint[0, 0]
        deep = set(lone.footprint[:, 0].tolist())
        assert set(mine.footprint[:, 1].tolist()) == deep
    assert both.parallel.tolist() == [2, 1]


def test_a_buffer_inside_a_loop_serves_all_its_iterations() -> None:
    # The cache of C lives inside i0 j0 i1 j1 (fusion level 2): 8 x 16 elements, not 32 x 48.
    sketch = next(s for s in sketches("matmul") if ".cache" in str(s.steps) and "level=2" in str(s))
    made = profile(build_nest(population_of(sketch, [TILES])))
    cache = made["C"].accesses[C]
    assert cache.buffer.name == "C.cache"
    assert cache.footprint[0, 0] == 8 * 16
    copied = made["C.cache"].accesses[-1]
    assert copied.buffer.name == "C"
    assert copied.footprint[0, 0] == 32 * 48
    assert np.all(made["C.cache"].accesses[0].footprint[0] == 8 * 16)


def test_what_the_parallel_loop_allocates_is_each_iteration_s_own() -> None:
    found = 0
    for sketch in sketches("matmul_relu"):
        fused = sketch.roles.fused_into("C")
        made = profile(build_nest(sample(sketch, 3, np.random.default_rng(0))))["C"]
        for access in made.accesses:
            own = np.broadcast_to(access.private, 3).tolist()
            packed = access.buffer.name.endswith(".pack")  # where the loop needs it
            assert own == [packed or (bool(fused) and access.buffer.name == "C")] * 3
        found += bool(fused)
    assert found > 0
