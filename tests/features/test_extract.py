"""The columns and their values, for a program computed by hand and for random ones."""

from __future__ import annotations

from math import frexp

import numpy as np
import pytest
from definitions import HARDWARE, NAMES, sketches
from rows import population_of

from ansor.annotate.sample import sample
from ansor.config import SketchConfig
from ansor.features.columns import COLUMNS, NUM_FEATURES
from ansor.features.extract import extract
from ansor.features.legality import legal, unrolled_statements
from ansor.features.profile import profile
from ansor.program.nest import build_nest
from ansor.program.sketch import Population
from ansor.targets.cpu.machine import Hardware

NUMBER = {name: i for i, (name, _) in enumerate(COLUMNS)}
# See test_profile_by_hand: loops i0=2 i1=2 j1=3 k0=6 i2=2 k1=4 i3=4 j3=16.
TILES = {
    "C.i": (2, 2, 2, 4),
    "C.j": (1, 3, 1, 16),
    "C.k": (6, 4),
    "C.parallel": (2,),
    "C.unroll": (16,),
}
ITERATIONS = 32 * 48 * 24


def features_of(population: Population) -> np.ndarray:
    return extract(population, profile(build_nest(population)))


@pytest.fixture(scope="module")
def matmul() -> np.ndarray:
    """`[F]`: the one stage of the one program."""
    return features_of(population_of(sketches("matmul")[0], [TILES]))[0, 0]


def test_every_column_has_a_name_of_its_own_and_a_unit() -> None:
    assert len(NUMBER) == len(COLUMNS) == NUM_FEATURES
    assert all(unit for _, unit in COLUMNS)


@pytest.mark.parametrize("name", NAMES)
def test_shape_and_values_of_random_programs(name: str) -> None:
    rng = np.random.default_rng(0)
    for sketch in sketches(name):
        found = features_of(sample(sketch, 64, rng))
        assert found.shape == (64, len(sketch.dag.stages), NUM_FEATURES)
        assert found.dtype == np.float32
        assert np.isfinite(found).all()
        assert (found >= 0).all(), "logarithms of one more than a count"


def test_further_columns_of_each_stage_come_last() -> None:
    population = sample(sketches("matmul_relu")[0], 32, np.random.default_rng(0))
    profiles = profile(build_nest(population))
    own = [[np.full(32, 10 * s + c, dtype=np.float32) for c in range(2)] for s in range(2)]
    found = extract(population, profiles, own)
    np.testing.assert_array_equal(found[:, :, :NUM_FEATURES], extract(population, profiles))
    assert (found[:, :, NUM_FEATURES:] == [[0, 1], [10, 11]]).all()


# Access slots: the write first, then the reads A and B.
BY_HAND = {
    "ops.float_add": ITERATIONS,
    "ops.float_mul": ITERATIONS,
    "ops.float_div": 0,
    "stage.iterations": ITERATIONS,
    "stage.outer_product": 2 * 2 * 3 * 6,  # i0 j0 i1 j1 k0: half of the ten loops
    "stage.vector_lanes": 16,
    "stage.unrolled": 4,  # i3
    "stage.auto_unroll": 16,
    "stage.parallel": 2,  # i0 j0
    "stage.inner_reduction": 24,  # all of k
    "stage.spatial_inner": 32 * 48,
    "stage.allocation": 4 * 32 * 48,
    "access0.bytes": 4 * ITERATIONS,
    "access0.unique_bytes": 4 * 32 * 48,
    "access0.unique_lines": 32 * 48 / 16,
    "access0.reuse_count": 4,  # k1
    "access0.reuse_distance": 64,  # i3 j3
    "access0.reuse_distance_bytes": 4 * (4 + 16 + 64),  # A 4 x 1, B 1 x 16, C 4 x 16
    "access0.stride": 1,
    "access0.vector_stride": 1,
    "access1.unique_bytes": 4 * 32 * 24,
    "access1.reuse_count": 16,  # j3
    "access1.reuse_distance": 1,
    "access1.reuse_distance_bytes": 12,
    "access1.bytes_per_reuse": 4 * ITERATIONS / 16,
    "access1.stride": 24,  # i3 is the innermost loop that moves A
    "access1.vector_stride": 0,
    "access2.unique_bytes": 4 * 24 * 48,
    "access2.reuse_count": 4,  # i3
    "access2.reuse_distance": 16,
    "access2.reuse_distance_bytes": 4 * (1 + 16 + 16),
    "access2.stride": 1,
    "access2.vector_stride": 1,
    "access3.unique_bytes": 0,  # there is no such access
    "stage.loops": 8,
}
PLAIN = {
    "stage.attached": 0,
    "stage.position": 0,
    "stage.branch": 0,
    "stage.reduction": 1,
    "access0.is_read": 1,  # a reduction reads what it updates
    "access0.is_write": 1,
    "access1.is_read": 1,
    "access1.is_write": 0,
    "access3.is_read": 0,
}


def rough(value: float) -> float:
    """The logarithm of 1 + value to base 2, linear between powers of two."""
    mantissa, exponent = frexp(1 + value)  # the first in [0.5, 1)
    return exponent - 1 + (2 * mantissa - 1)


@pytest.mark.parametrize("column", BY_HAND)
def test_logarithms_by_hand(matmul: np.ndarray, column: str) -> None:
    assert matmul[NUMBER[column]] == pytest.approx(rough(BY_HAND[column]), rel=1e-5)


@pytest.mark.parametrize("column", PLAIN)
def test_plain_columns_by_hand(matmul: np.ndarray, column: str) -> None:
    assert matmul[NUMBER[column]] == PLAIN[column]


def test_intensity_runs_from_one_iteration_to_all(matmul: np.ndarray) -> None:
    curve = [matmul[NUMBER[f"intensity{i}"]] for i in range(10)]
    whole = 4 * (32 * 24 + 24 * 48 + 32 * 48)
    assert curve[0] == pytest.approx(rough(2 / 12), abs=1e-5)
    assert curve[-1] == pytest.approx(rough(2 * ITERATIONS / whole), rel=1e-5)
    assert max(curve) == pytest.approx(curve[-1], rel=1e-5)


@pytest.mark.parametrize("name", ["conv2d", "matmul_relu", "row_sum"])
def test_a_row_does_not_depend_on_its_neighbours(name: str) -> None:
    for sketch in sketches(name):
        population = sample(sketch, 24, np.random.default_rng(3))
        whole = features_of(population)
        alone = [features_of(population.take([row])) for row in range(24)]
        np.testing.assert_array_equal(whole, np.concatenate(alone))


def test_statements_of_the_register_tile() -> None:
    sketch = sketches("matmul")[0]
    programs = [
        TILES,  # i3 = 4 copies of one vector of 16
        TILES | {"C.i": (2, 2, 1, 8), "C.j": (1, 1, 1, 48)},  # 8 copies of three vectors
        TILES | {"C.i": (1, 1, 1, 32), "C.j": (1, 1, 1, 48)},  # 32 copies of three vectors
        TILES | {"C.i": (1, 1, 1, 32), "C.j": (1, 1, 16, 3)},  # 32 copies of a fifth of a vector
    ]
    nest = build_nest(population_of(sketch, programs))
    assert unrolled_statements(nest.stages["C"], lanes=16).tolist() == [4, 24, 96, 32]
    assert unrolled_statements(nest.stages["C"], lanes=4).tolist() == [16, 96, 384, 32]


def test_what_unrolls_too_far_is_illegal() -> None:
    tiles = [{"C.i": (32 // n, 1, 1, n), "C.j": (1, 3, 1, 16)} for n in (1, 2, 4, 8, 16, 32)]
    nest = build_nest(population_of(sketches("matmul")[0], tiles))
    config = SketchConfig(max_unrolled_statements=8)
    wide, narrow = Hardware(vector_bytes=64), Hardware(vector_bytes=32)
    assert legal(nest, wide, config).tolist() == [True] * 4 + [False] * 2
    assert legal(nest, narrow, config).tolist() == [True] * 3 + [False] * 3


@pytest.mark.parametrize("name", NAMES)
def test_most_random_programs_are_legal(name: str) -> None:
    rng = np.random.default_rng(0)
    for sketch in sketches(name):
        nest = build_nest(sample(sketch, 128, rng))
        assert legal(nest, HARDWARE, SketchConfig()).mean() > 0.3
