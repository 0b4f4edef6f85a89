"""Winograd's convolution is the convolution, for weights that were transformed."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.workloads import build
from ansor.workloads.minimal_filtering import TRANSFORMS, transform_weight


@pytest.mark.parametrize("tile", TRANSFORMS)
@pytest.mark.parametrize("relu", [0, 1])
def test_transformed_weights_give_the_direct_convolution(relu: int, tile: int) -> None:
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1, 8, 12, 5), dtype=np.float32)
    weight = rng.standard_normal((3, 3, 5, 7), dtype=np.float32)
    bias = rng.standard_normal(7, dtype=np.float32) + (0 if relu else 100)  # ReLU does nothing
    sizes = {"height": 8, "width": 12, "channels": 5, "filters": 7}
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
