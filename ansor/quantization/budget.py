"""Operators that stay in float32, so that a bound of the error holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ansor.errors import ArgumentError
from ansor.quantization.samples import Array

Outputs = Sequence[Sequence[Array]]  # of each sample
Metric = Callable[[Outputs, Outputs], float]


@dataclass(frozen=True, eq=False)
class Attempt:
    """A quantised model.

    Attributes:
        model: an `onnx.ModelProto`.
        error: by the metric, of the outputs for the checked samples.
        in_float: names of the nodes that were left out.
    """

    model: Any
    error: float
    in_float: tuple[str, ...]


def normalised_square_error(expected: Outputs, found: Outputs) -> float:
    """Mean square error over mean square, of the worst output."""
    errors = []
    for number in range(len(expected[0])):
        a, b = (
            np.concatenate([np.ravel(sample[number]) for sample in outputs]).astype(np.float64)
            for outputs in (expected, found)
        )
        signal = float(np.square(a).sum())
        noise = float(np.square(a - b).sum())
        errors.append(noise / signal if signal else noise)
    return max(errors)


def within_budget(
    attempt: Callable[[Sequence[str]], Attempt],
    ranked: Callable[[Attempt], Sequence[str]],
    max_error: float | None,
) -> Attempt:
    """The attempt that leaves the fewest of the most sensitive nodes in float32.

    Their number is doubled until the bound holds, and then halved between the last two. The error
    is taken to fall with the number.

    Args:
        attempt: quantises without the given nodes.
        ranked: names of nodes of the first attempt, the most sensitive first.
        max_error: None for no bound.

    Raises:
        ArgumentError: the bound holds for no number of them.
    """
    first = attempt(())
    if max_error is None or first.error <= max_error:
        return first
    names = ranked(first)
    short, count = 0, 1
    while True:
        best = attempt(names[:count])
        if best.error <= max_error:
            break
        if count >= len(names):
            remedy = f"without quantised operators the error is {best.error:.3g}; allow as much"
            raise ArgumentError("max_error", max_error, remedy)
        short, count = count, min(2 * count, len(names))
    while count - short > 1:
        middle = (short + count) // 2
        found = attempt(names[:middle])
        if found.error <= max_error:
            best, count = found, middle
        else:
            short = middle
    return best


def by_sensitivity(
    names: Sequence[str], error_of: Callable[[Sequence[str]], float], negligible: float
) -> list[str]:
    """Names of nodes, those first whose quantisation alone makes the largest error.

    Groups are halved until they hold one node. A group with a negligible error stays whole, and
    its nodes share the error: few sensitive nodes among many are found in few measurements.

    Args:
        error_of: the error if the given nodes alone are quantised.
    """
    scores: dict[str, float] = {}
    groups = [list(names)] if names else []
    while groups:
        group = groups.pop()
        error = error_of(group)
        if len(group) == 1 or error <= negligible:
            scores |= dict.fromkeys(group, error / len(group))
        else:
            middle = len(group) // 2
            groups += [group[:middle], group[middle:]]
    return sorted(names, key=lambda name: -scores[name])
