"""Random parameters at a scale that keeps a deep network's outputs finite and of order one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
_NONE: Mapping[str, int] = MappingProxyType({})


def _kernel(shape: tuple[int, ...], fan_in: int, rng: np.random.Generator) -> Array:
    """He et al., 2015: normal with variance 2 / fan-in."""
    return (rng.standard_normal(shape) * math.sqrt(2.0 / fan_in)).astype(np.float32)


def _near(centre: float, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Uniform within 0.1 of the centre: batch normalisation near identity, yet not the identity."""
    return rng.uniform(centre - 0.1, centre + 0.1, shape).astype(np.float32)


def _centre(name: str) -> float:
    """Centre of a vector's values: statistics near identity, scales below one.

    With a scale of 0.7, growth in residual branches balances the decrease in projecting shortcuts.
    """
    if name.endswith("running_var"):
        return 1.0
    return 0.7 if name.endswith("weight") else 0.0


def draw(
    shapes: Mapping[str, tuple[int, ...]], seed: int, fan_ins: Mapping[str, int] = _NONE
) -> dict[str, Array]:
    """Parameters by name, float32, drawn in the order of `shapes`.

    Matrices and kernels are He-initialised; vectors are scales ("weight"), variances, biases or
    means by their names. A shape is [outputs, inputs, ...], unless `fan_ins` knows better.
    """
    rng = np.random.default_rng(seed)
    return {
        name: _kernel(shape, fan_ins.get(name, math.prod(shape[1:])), rng)
        if len(shape) > 1
        else _near(_centre(name), shape, rng)
        for name, shape in shapes.items()
    }
