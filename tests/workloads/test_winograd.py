"""Winograd's convolution is the convolution, for weights that were transformed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ansor.workloads import build
from ansor.workloads.minimal_filtering import (
    F2,
    F2_STRIDE2,
    F2_TRANSPOSED,
    F3,
    F4,
    F4_TRANSPOSED,
    TRANSFORMS,
    Transform,
    transform_weight,
)


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


@pytest.mark.parametrize("transform", [F2, F3, F4, F2_STRIDE2], ids=["2", "3", "4", "2 by 2"])
def test_the_matrices_filter_a_line(transform: Transform) -> None:
    rng = np.random.default_rng(0)
    line, taps = rng.standard_normal(transform.size), rng.standard_normal(3)
    firsts = np.arange(transform.tile) * transform.stride
    assert firsts[-1] + 3 <= transform.inputs == transform.size
    check(transform, line, taps, [line[first : first + 3] @ taps for first in firsts])


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
    matrices = (transform.data, transform.weight, transform.output)
    data, weight, output = (np.asarray(m, dtype=np.float64) for m in matrices)
    found = output @ ((weight @ taps) * (data @ line))
    assert np.abs(found - expected).max() <= 1e-12
