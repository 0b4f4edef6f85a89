"""Bytes between levels of the hierarchy and translations of addresses, counted on paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from definitions import HARDWARE, square_matmul
from rows import Values, population_of

from ansor.features.profile import StageProfile, profile
from ansor.program.nest import build_nest
from ansor.program.sketch import Sketch
from ansor.targets.cpu.draft.constants import DEFAULTS
from ansor.targets.cpu.draft.traffic import page_misses, traffic_bytes

N = 1024  # a row is a page
BASE = {
    "C.i": (256, 1, 1, 4),
    "C.j": (16, 1, 1, 64),
    "C.k": (8, 128),
    "C.parallel": (2,),
    "C.unroll": (0,),
}


@pytest.fixture(scope="module")
def matmul() -> Sketch:
    """1024 x 1024 x 1024."""
    return square_matmul(N)


def of(sketch: Sketch, *programs: Values) -> StageProfile:
    return profile(build_nest(population_of(sketch, programs)))["C"]


def test_what_fits_comes_in_once(matmul: Sketch) -> None:
    """All three matrices, 12 MiB, fit the last level: nothing comes from memory, and each level
    above reads at least all of them."""
    _, last, memory = traffic_bytes(of(matmul, BASE), HARDWARE, DEFAULTS.core)
    assert memory.tolist() == [0.0]
    assert last[0] >= 3 * 4 * N * N


def test_each_thread_has_its_own_of_what_the_parallel_loop_allocates(matmul: Sketch) -> None:
    """12 MiB once fit 20 MiB, of which 12 are kept; as buffers of two threads they do not."""
    profile = of(matmul, BASE)
    private = replace(profile, accesses=tuple(replace(a, private=True) for a in profile.accesses))
    level1, level2, _ = HARDWARE.cache_bytes
    for cores, comes in ((1, False), (2, True)):
        machine = replace(HARDWARE, cores=cores, cache_bytes=(level1, level2, 21 << 20))
        assert traffic_bytes(profile, machine, DEFAULTS.core)[-1].tolist() == [0.0]
        assert (traffic_bytes(private, machine, DEFAULTS.core)[-1][0] > 0) == comes


def test_the_last_level_does_not_hold_as_much_as_it_is_large(matmul: Sketch) -> None:
    level1, level2, _ = HARDWARE.cache_bytes
    for size, comes in ((19 << 20, True), (21 << 20, False)):
        machine = replace(HARDWARE, cache_bytes=(level1, level2, size))
        assert (traffic_bytes(of(matmul, BASE), machine, DEFAULTS.core)[-1][0] > 0) == comes


def test_what_a_core_keeps_from_run_to_run_does_not_come_again() -> None:
    """Three matrices of 240 x 240, 675 KiB, stay in a second level of 1 MiB; of 480 x 480 not,
    though half of them is each core's."""
    for size, stays in ((240, True), (480, False)):
        tiles = {"C.i": (size // 4, 1, 1, 4), "C.j": (size // 48, 1, 1, 48), "C.k": (size, 1)}
        first, last, _ = traffic_bytes(
            of(square_matmul(size), BASE | tiles), HARDWARE, DEFAULTS.core
        )
        assert first[0] > 0
        assert (last[0] == 0) == stays


def test_smaller_blocks_move_more() -> None:
    """Of a size whose rows do not all fall on the same few sets."""
    shape = BASE | {"C.j": (15, 1, 1, 64), "C.k": (960, 1)}
    programs = [shape | {"C.i": (960 // i, 1, i // 4, 4)} for i in (8, 16, 32)]
    first, _, _ = traffic_bytes(of(square_matmul(960), *programs), HARDWARE, DEFAULTS.core)
    assert first[0] > first[1] > first[2]


def test_runs_that_are_left_for_many_others_are_short(matmul: Sketch) -> None:
    """64 columns of B in 1024 rows, then the next 64: from the last cache a quarter more comes for
    each run of 256 bytes. Walked row by row it is one run, as A and C are in both."""
    rows = BASE | {"C.j": (1, 1, 16, 64), "C.k": (1024, 1), "C.parallel": (0,)}
    columns = BASE | {"C.k": (1, 1024), "C.parallel": (0,)}
    level1, _, last = HARDWARE.cache_bytes
    machine = replace(HARDWARE, cache_bytes=(level1, 13 << 20, last))
    moved = traffic_bytes(of(matmul, rows, columns), machine, DEFAULTS.core)[1] / (4 * N * N)
    assert moved.tolist() == [pytest.approx(3, rel=0.02), pytest.approx(3.25, rel=0.02)]


def test_every_row_of_a_tall_block_is_a_page(matmul: Sketch) -> None:
    """128 rows of B, 64 columns wide, and as many again for every tile of the output."""
    tiles = (N // 4) * (N // 64) * 8
    (missed,) = page_misses(of(matmul, BASE), 64).tolist()
    assert missed == pytest.approx(tiles * (128 + 4 + 4), rel=0.01)  # B, and 4 rows of A and C


def test_a_table_that_is_large_enough_misses_nothing(matmul: Sketch) -> None:
    everything = 3 * N
    assert page_misses(of(matmul, BASE), everything).tolist() == [0.0]
    assert page_misses(of(matmul, BASE), everything - 1)[0] == pytest.approx(everything)


def test_neighbouring_elements_share_pages(matmul: Sketch) -> None:
    """Without a step from row to row the whole width of B is read on one page per k."""
    wide = BASE | {"C.j": (1, 1, 16, 64), "C.k": (1024, 1)}
    tall = BASE | {"C.j": (16, 1, 1, 64), "C.k": (1, 1024)}
    few, many = page_misses(of(matmul, wide, tall), 64).tolist()
    assert few < many
    assert np.isfinite([few, many]).all()


def test_rows_of_two_operands_that_are_pages_apart_share_the_same_sets(matmul: Sketch) -> None:
    """Eight rows each of A and B: 1 in 16 sets holds what is read of either; B's alone fit there.
    The output's are brought in seldom."""
    tiles = {"C.i": (128, 1, 1, 8), "C.k": (128, 8)}
    profile = of(matmul, BASE | tiles)
    level1 = (32 << 10, *HARDWARE.cache_bytes[1:])
    machine = replace(HARDWARE, cache_bytes=level1)

    def moved(*apart: str) -> float:
        """Bytes into the first level, with the rows of some operands spread over all sets."""
        accesses = tuple(
            replace(a, spread=np.full_like(a.spread, 64)) if a.buffer.name in apart else a
            for a in profile.accesses
        )
        return float(
            traffic_bytes(replace(profile, accesses=accesses), machine, DEFAULTS.core)[0][0]
        )

    assert moved() == moved("C")
    assert moved() > 1.5 * moved("A")
    assert moved("A") == moved("B") == moved("A", "B", "C")
