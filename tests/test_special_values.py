"""Functions over the whole range of float32, NaN and infinities, as PyTorch computes them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import ansor

torch = pytest.importorskip("torch")

SPACING = 9973  # of the bit patterns of float32 that are taken
LANES = 16
LARGEST_EXP = 88.72283
# Errors in units of the last place, relative to float64. Subnormal results may be zero.
BOUNDS = {"exp": 8, "expm1": 8, "log1p": 4, "sigmoid": 4, "tanh": 20, "erf": 16, "softplus": 8}
FUNCTIONS = {
    "exp": torch.exp,
    "expm1": torch.expm1,
    "log1p": torch.log1p,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "softplus": torch.nn.functional.softplus,
}


class All(torch.nn.Module):
    """Every function of the same input."""

    def forward(self, x: Any) -> Any:
        return tuple(function(x) for function in FUNCTIONS.values())


@cache
def samples() -> Any:
    """Finite numbers of all exponents, those next to the end of `exp`, and what is not finite."""
    patterns = np.arange(0, 2**32, SPACING, dtype=np.uint64).astype(np.uint32)
    values = patterns.view(np.float32)
    ends = np.linspace(87, 89, 2000, dtype=np.float32)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, LARGEST_EXP], np.float32)
    row = np.concatenate([values[np.isfinite(values)], ends, -ends, special])
    return torch.from_numpy(np.resize(row, (-(-len(row) // LANES), LANES)))


@cache
def results() -> dict[str, npt.NDArray[np.float32]]:
    tuned = ansor.auto_schedule(All(), example_inputs=(samples(),), trials=0)
    return dict(zip(FUNCTIONS, (part.numpy() for part in tuned(samples())), strict=True))


@pytest.mark.parametrize("name", BOUNDS)
def test_errors_are_a_few_units_in_the_last_place(name: str) -> None:
    found = results()[name]
    exact = FUNCTIONS[name](samples().double()).numpy()
    with np.errstate(all="ignore"):
        expected = exact.astype(np.float32)
    normal = np.isfinite(expected) & (np.abs(expected) >= np.finfo(np.float32).tiny)
    error = np.abs(found[normal].astype(np.float64) - exact[normal])
    units = error / np.spacing(np.abs(expected[normal])).astype(np.float64)
    assert units.max() <= BOUNDS[name]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isposinf(found), np.isposinf(expected))


class Extremes(torch.nn.Module):
    """What chooses between elements."""

    def forward(self, x: Any, y: Any) -> Any:
        return (
            x.relu(),
            x.clamp(-1, 1),
            torch.maximum(x, y),
            torch.minimum(y, x),
            x.amax(1),
            x.amin(1),
            torch.nn.functional.max_pool1d(x, 2),
            x.argmax(1),
            x.argmin(1),
            x.max(1).indices,
        )


@pytest.mark.parametrize("seed", range(2))
def test_nan_is_passed_on(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((16, 8)).astype(np.float32)
    x[rng.random(x.shape) < 0.15] = np.nan
    y = rng.standard_normal(x.shape).astype(np.float32)
    y[rng.random(x.shape) < 0.15] = np.nan
    inputs = torch.from_numpy(x), torch.from_numpy(y)
    tuned = ansor.auto_schedule(Extremes(), example_inputs=inputs, trials=0)
    for found, expected in zip(tuned(*inputs), Extremes()(*inputs), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
