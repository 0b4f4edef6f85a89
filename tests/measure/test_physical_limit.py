"""Times that a machine cannot reach, or that are no times."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from definitions import HARDWARE, NAMES, TILE_HARDWARE, dag

from ansor.config import FULL
from ansor.measure.physical_limit import least_seconds, peak_times
from ansor.measure.result import ErrorKind, Measurement, checked, is_time
from ansor.targets.cuda.machine import gpu_of

MEASURE = FULL.measure
EXACT = replace(MEASURE, peak_margin=1.0, byte_margin=1.0)


@pytest.mark.parametrize("bad", [0.0, -1e-6, math.inf, -math.inf, math.nan])
def test_what_is_no_time_is_a_failure(bad: float) -> None:
    assert not is_time(bad)
    found = checked(Measurement((1e-3, bad), build_s=0.5, run_s=0.25))
    assert found.error is ErrorKind.RUN
    assert (found.latency_s, found.build_s, found.run_s) == (None, 0.5, 0.25)
    assert "not a time" in found.message


def test_what_is_too_short_is_a_failure() -> None:
    fine = Measurement((2e-3, 3e-3))
    assert checked(fine, 2e-3) is fine
    found = checked(fine, 2.1e-3)
    assert found.error is ErrorKind.RUN
    assert found.message == "0.002 s: the machine needs at least 0.0021 s"


def test_a_failure_stays_what_it_is() -> None:
    crash = Measurement(error=ErrorKind.CRASH, message="gone")
    assert checked(crash, 1.0) is crash
    assert checked(Measurement()).error is ErrorKind.RUN


def test_the_limit_is_the_peak_with_a_margin() -> None:
    """A product of 32 x 40 x 36 in float32, with a maximum that does not count."""
    exact_s = 2 * 32 * 40 * 36 / HARDWARE.peak_flops
    assert least_seconds(dag("matmul_relu"), HARDWARE, EXACT) == pytest.approx(exact_s)
    found = least_seconds(dag("matmul_relu"), HARDWARE, MEASURE)
    assert found == pytest.approx(exact_s / MEASURE.peak_margin)


def test_a_map_is_limited_by_its_bytes() -> None:
    """Of a sum of rows: the input of 64 KiB and an output of four floats."""
    name, moved = "row_sum", 4 * 4096 * 4 + 4 * 4
    assert least_seconds(dag(name), HARDWARE, EXACT) == pytest.approx(moved / HARDWARE.peak_bytes)


def test_the_roofline_has_arithmetic_and_memory() -> None:
    found = peak_times(dag("matmul_relu"), HARDWARE)
    assert found.compute_s == pytest.approx(2 * 32 * 40 * 36 / HARDWARE.peak_flops)
    moved = 4 * 4096 * 4 + 4 * 4
    found = peak_times(dag("row_sum"), HARDWARE)
    assert found.compute_s == 0
    assert found.memory_s == pytest.approx(moved / HARDWARE.memory_bandwidth)


def test_short_operands_have_their_own_peaks() -> None:
    lanes_flops = HARDWARE.peak_flops
    assert HARDWARE.product_flops(8) == HARDWARE.product_flops(4) == lanes_flops
    assert HARDWARE.product_flops(2) == 2 * lanes_flops
    assert HARDWARE.product_flops(1) == 4 * lanes_flops
    tiles = replace(
        TILE_HARDWARE,
        dot_units=tuple(
            replace(unit, vectors=256 if unit.instruction.startswith("t") else 1)
            for unit in TILE_HARDWARE.dot_units
        ),
    )
    # A tile takes 16 cycles for the work of 256 vectors, of which two are multiplied per cycle.
    assert tiles.product_flops(1) == 4 * lanes_flops * 16 / 2
    assert tiles.product_flops(4) == lanes_flops


def test_tensor_cores_have_their_own_peak() -> None:
    gpu = gpu_of("sm_90")
    assert gpu.product_flops(2) >= 8 * gpu.peak_flops
    assert gpu.product_flops(1) == 2 * gpu.product_flops(2)
    assert gpu.product_flops(4) >= gpu.peak_flops


@pytest.mark.parametrize("name", NAMES)
def test_the_draft_promises_nothing_impossible(name: str) -> None:
    """A limit above the draft would call programs of this machine impossible."""
    assert 0 <= least_seconds(dag(name), HARDWARE, MEASURE) < 1e-3
