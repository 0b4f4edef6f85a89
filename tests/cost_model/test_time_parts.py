"""The parts of a drafted time: their sum is the time, and none is negative."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from definitions import HARDWARE, TILE_HARDWARE, TILED, sketches, square_matmul, tile_sketches
from gpu import GPU, gpu_sketches, legal_sample
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import population_of
from sampling import sample

from ansor.features.profile import profile
from ansor.program.nest import build_nest
from ansor.program.sketch import Sketch
from ansor.targets.cpu.draft.constants import DEFAULTS
from ansor.targets.cpu.draft.draft import draft
from ansor.targets.cpu.draft.traffic import crossings
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cuda.search import CUDA_SEARCH
from ansor.targets.search import StageDraft

ROUNDING = 1 + 1e-5  # sums of a dozen numbers in float32
DEFINITIONS = (
    *("matmul", "matmul_relu", "conv2d_stride2", "depthwise_conv2d", "winograd_conv2d", "softmax"),
    *("row_sum", "phases", "bfloat16_matmul", "int8_conv2d"),
)


def check(drafts: Mapping[str, StageDraft], hosted: frozenset[str] = frozenset()) -> None:
    """The laws of the parts; stages of `hosted` may work during the time of another stage."""
    for name, each in drafts.items():
        parts = each.parts()
        shares = (*parts.resources.values(), *parts.further.values(), *parts.included.values())
        assert all((seconds >= 0).all() for seconds in (*shares, parts.together))
        total = parts.together + sum(parts.further.values())
        assert total == pytest.approx(each.seconds, rel=1e-5)
        if name not in hosted:
            for seconds in parts.resources.values():
                assert (seconds <= parts.together * ROUNDING).all()
                assert (seconds <= each.seconds * ROUNDING).all()


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(DEFINITIONS), st.integers(0, 2**16))
def test_parts_come_to_the_time_of_a_cpu(name: str, seed: int) -> None:
    for sketch in sketches(name):
        check_on_cpu(sketch, HARDWARE, seed)


@pytest.mark.parametrize("name", list(TILED)[:2])
def test_parts_come_to_the_time_with_tiles(name: str) -> None:
    for sketch in tile_sketches(name):
        check_on_cpu(sketch, TILE_HARDWARE, seed=1)


def check_on_cpu(sketch: Sketch, hardware: Hardware, seed: int) -> None:
    profiles = profile(build_nest(sample(sketch, 16, np.random.default_rng(seed))))
    hosted = frozenset(n for n, each in profiles.items() if each.nest.finishes is not None)
    check(draft(profiles, hardware), hosted)


@pytest.mark.parametrize("name", ["matmul", "softmax"])
def test_parts_come_to_the_time_of_a_gpu(name: str) -> None:
    for sketch in gpu_sketches(name):
        nest = build_nest(legal_sample(sketch, 16))
        check(CUDA_SEARCH.draft(nest, profile(nest), GPU))


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(DEFINITIONS), st.integers(0, 2**16))
def test_no_more_enters_an_outer_cache_than_an_inner_one(name: str, seed: int) -> None:
    """Each level is larger than the one inside it, so it needs fewer transfers."""
    for sketch in sketches(name):
        for each in profile(build_nest(sample(sketch, 16, np.random.default_rng(seed)))).values():
            first, second, last = crossings(each, HARDWARE, DEFAULTS.core).bytes
            assert (second <= first * ROUNDING).all()
            assert (last <= second * ROUNDING).all()


def test_parts_of_a_matmul_by_hand() -> None:
    """256 x 256 x 256 on two cores at 4 GHz: 2 multiply-adds on 16 lanes a cycle need 262 144
    cycles of each core. A step is 16 multiply-adds with 8 elements of A and 2 vectors of B, and
    two instructions for the loop, of 6 that are issued in a cycle."""
    values = {
        "C.i": (2, 8, 2, 8),
        "C.j": (4, 1, 2, 32),
        "C.k": (4, 64),
        "C.parallel": (2,),
        "C.unroll": (16,),
    }
    profiles = profile(build_nest(population_of(square_matmul(256), [values])))
    parts = draft(profiles, HARDWARE)["C"].parts()
    steps = 256**3 / (8 * 32)
    assert parts.resources["arithmetic units"] == pytest.approx(256**3 / 16 / 2 / 2 / 4e9)
    control = steps * 2 / 6 + 8 * 1 * 2  # and one division for each of 8 parallel iterations
    assert parts.included["loops, in the front end"] == pytest.approx(control / 2 / 4e9)
    assert parts.further["start of threads"] == pytest.approx(1.1 * HARDWARE.parallel_overhead_s)
