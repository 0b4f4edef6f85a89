"""Winograd's convolution is the convolution, for weights that were transformed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.workloads import build
from ansor.workloads.minimal_filtering.transformed_weights import transform_weight
from ansor.workloads.minimal_filtering.transforms import (
    F2,
    F2_PHASES,
    F2_STRIDE2,
    F2_TRANSPOSED,
    F2_WIDE,
    F3,
    F3_PHASES,
    F4,
    F4_PHASES,
    F4_TRANSPOSED,
    F4_WIDE,
    Transform,
    minimal,
)

TRANSFORMS = {transform.tile: transform for transform in (F2, F3, F4)}
ON_LINES = (F2, F3, F4, F2_STRIDE2, F2_WIDE, F4_WIDE)


@pytest.mark.parametrize("tile", TRANSFORMS)
@pytest.mark.parametrize("relu", [0, 1])
def test_transformed_weights_give_the_direct_convolution(relu: int, tile: int) -> None:
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1, 12, 24, 5), dtype=np.float32)
    weight = rng.standard_normal((3, 3, 5, 7), dtype=np.float32)
    bias = rng.standard_normal(7, dtype=np.float32) + (0 if relu else 100)  # ReLU does nothing
    sizes = {"height": 12, "width": 24, "channels": 5, "filters": 7}
    expected = build("conv2d", **sizes).reference(data, weight, bias)
    winograd = build("winograd_conv2d", **sizes, relu=relu, tile=tile)
    found = winograd.reference(data, transform_weight(weight, TRANSFORMS[tile]), bias)
    assert np.abs(found.reshape(expected.shape) - expected).max() <= 1e-5 * np.abs(expected).max()


def test_outputs_that_are_no_whole_tiles_are_cut() -> None:
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1, 7, 9, 4), dtype=np.float32)
    weight = rng.standard_normal((3, 3, 4, 5), dtype=np.float32)
    bias = rng.standard_normal(5, dtype=np.float32)
    sizes = {"height": 7, "width": 9, "channels": 4, "filters": 5}
    expected = build("conv2d", **sizes).reference(data, weight, bias)
    for tile, transform in TRANSFORMS.items():
        workload = build("winograd_conv2d", **sizes, tile=tile, join=1)
        found = workload.reference(data, transform_weight(weight, transform), bias)
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("transform", ON_LINES)
def test_the_matrices_filter_a_line(transform: Transform) -> None:
    rng, count = np.random.default_rng(0), transform.taps
    line, taps = rng.standard_normal(transform.size), rng.standard_normal(count)
    firsts = np.arange(transform.tile) * transform.stride
    assert firsts[-1] + count <= transform.inputs == transform.size
    check(transform, line, taps, [line[first : first + count] @ taps for first in firsts])


@pytest.mark.parametrize("transform", [*F2_PHASES, *F3_PHASES, *F4_PHASES])
def test_the_matrices_filter_the_phases_of_a_line(transform: Transform) -> None:
    rng, phases = np.random.default_rng(0), transform.phases
    line = rng.standard_normal((transform.inputs, phases))
    taps = rng.standard_normal((transform.taps, phases))
    flat = line.ravel()
    expected = [
        flat[first : first + taps.size] @ taps.ravel()
        for first in transform.stride * np.arange(transform.tile)
    ]
    data, weight, output = matrices(transform)
    found = output @ ((weight @ taps) * (data @ line)).sum(axis=1)
    assert np.abs(found - expected).max() <= 1e-12


@given(data=st.data())
def test_the_matrices_of_any_points_filter_a_line(data: st.DataObject) -> None:
    tile, taps = data.draw(st.integers(1, 5)), data.draw(st.integers(2, 5))
    some = st.fractions(-3, 3, max_denominator=4)
    count = tile + taps - 2
    points = data.draw(st.lists(some, min_size=count, max_size=count, unique=True))
    transform = minimal(tile, taps, points)
    assert transform.size == transform.inputs == tile + taps - 1
    assert all(value == int(value) for row in transform.data for value in row)
    rng = np.random.default_rng(0)
    line, kernel = rng.standard_normal(transform.size), rng.standard_normal(taps)
    into, weight, output = matrices(transform)
    found = output @ ((weight @ kernel) * (into @ line))
    most = (np.abs(output) @ (np.abs(weight @ kernel) * (np.abs(into) @ np.abs(line)))).max()
    expected = [line[first : first + taps] @ kernel for first in range(tile)]
    assert np.abs(found - expected).max() <= 1e-13 * most


def test_as_many_points_as_there_are_products_but_one() -> None:
    with pytest.raises(ValueError, match=r"F\(2, 3\) takes 3, not 2"):
        minimal(2, 3, (0, 1))


@pytest.mark.parametrize("transform", [F2_TRANSPOSED, F4_TRANSPOSED], ids=["2", "4"])
def test_the_matrices_spread_a_line(transform: Transform) -> None:
    """Outputs of two tiles, by matrices and as the transpose of a convolution by four taps."""
    rng = np.random.default_rng(0)
    step = transform.step
    line, taps = rng.standard_normal(transform.inputs), rng.standard_normal(4)
    assert (transform.tile, transform.inputs) == (2 * step, step + 2)
    spread = np.zeros(2 * transform.inputs + 2)
    for i, value in enumerate(line):
        spread[2 * i : 2 * i + 4] += value * taps
    # With a padding of one and an input before the first, output 0 stands at 3.
    check(transform, line, taps, spread[3 : 3 + transform.tile])


def check(transform: Transform, line: Any, taps: Any, expected: Any) -> None:
    data, weight, output = matrices(transform)
    found = output @ ((weight @ taps) * (data @ line))
    assert np.abs(found - expected).max() <= 1e-12


def matrices(transform: Transform) -> tuple[Any, Any, Any]:
    made = (transform.data, transform.weight, transform.output)
    data, weight, output = (np.asarray(m, dtype=np.float64) for m in made)
    return data, weight, output
