"""Differences between results and the original's, and their limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Errors from rounding, relative to the largest finite value of an output. Each layer of a network
# adds up in another order than the original, and convolutions may use minimal filtering.
NETWORK_TOLERANCE: Mapping[str, float] = MappingProxyType(
    {"float64": 1e-9, "float32": 1e-3, "float16": 3e-2, "bfloat16": 1e-1}
)
# The same for a single operator on the same operands.
OPERATOR_TOLERANCE: Mapping[str, float] = MappingProxyType(
    {"float64": 1e-11, "float32": 1e-4, "float16": 1e-2, "bfloat16": 4e-2}
)


@dataclass(frozen=True)
class Difference:
    """The difference between results and the original's.

    Attributes:
        relative: largest error, relative to the largest finite value of its output; infinite
            where shapes, dtypes or NaNs differ.
        excess: ratio of the error to its limit; above 1, the results differ.
        text: description of the place.
    """

    relative: float
    excess: float
    text: str


SAME = Difference(0.0, 0.0, "equal")


def difference(
    found: Sequence[Array], expected: Sequence[Array], tolerance: Mapping[str, float]
) -> Difference:
    """The largest difference over several outputs."""
    if len(found) != len(expected):
        return _infinite(f"{len(found)} outputs instead of {len(expected)}")
    pairs = enumerate(zip(found, expected, strict=True))
    all_of = [_difference(place, f, e, tolerance) for place, (f, e) in pairs]
    return max(all_of, key=lambda one: one.excess, default=SAME)


def _infinite(text: str) -> Difference:
    return Difference(float("inf"), float("inf"), text)


def _difference(
    place: int, found: Array, expected: Array, tolerance: Mapping[str, float]
) -> Difference:
    where = f"output {place}"
    if found.shape != expected.shape:
        return _infinite(f"{where} has shape {found.shape} instead of {expected.shape}")
    if found.dtype != expected.dtype:
        return _infinite(f"{where} has dtype {found.dtype} instead of {expected.dtype}")
    allowed = tolerance.get(str(expected.dtype))
    if allowed is None:
        return _exact(where, found, expected)
    return _rounded(where, found.astype(np.float64), expected.astype(np.float64), allowed)


def _exact(where: str, found: Array, expected: Array) -> Difference:
    wrong = int(np.count_nonzero(found != expected))
    return _infinite(f"{where} differs in {wrong} of {found.size} elements") if wrong else SAME


def _rounded(where: str, found: Array, expected: Array, allowed: float) -> Difference:
    """The difference of floats: NaN and infinities must be equal, other elements close."""
    finite = np.isfinite(expected)
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True):
        return _infinite(f"{where} has other NaNs or infinities")
    if not np.all(np.isfinite(found[finite])):
        return _infinite(f"{where} is not finite where it should be")
    if not finite.any():
        return SAME
    largest = float(np.abs(expected[finite]).max())
    error = float(np.abs(found[finite] - expected[finite]).max())
    relative = error / largest if largest else error
    text = f"{where} differs by {error:.3g}, {relative:.2g} of its largest value {largest:.3g}"
    return Difference(relative, relative / allowed, text)
