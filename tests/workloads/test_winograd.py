"""Winograd's convolution is the convolution, for weights that were transformed."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.workloads import build
from ansor.workloads.minimal_filtering import (
    F2,
    F2_STRIDE2,
    F3,
    F4,
    KERNEL,
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
    line, taps = rng.standard_normal(transform.size), rng.standard_normal(KERNEL)
    firsts = np.arange(transform.tile) * transform.stride
    assert firsts[-1] + KERNEL <= transform.size
    expected = [line[first : first + KERNEL] @ taps for first in firsts]
    matrices = (transform.data, transform.weight, transform.output)
    data, weight, output = (np.asarray(m, dtype=np.float64) for m in matrices)
    found = output @ ((weight @ taps) * (data @ line))
    assert np.abs(found - expected).max() <= 1e-12
