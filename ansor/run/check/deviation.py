"""Deviations of the results of a network in short floats from those in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Metric = Callable[[Array, Array], float]  # (expected, actual) of one output -> error


@dataclass(frozen=True)
class Deviation:
    """The deviation of results, each figure of the worst output.

    Attributes:
        error: by the metric of the budget.
        squared: normalised mean squared error.
        cosine: of the angle between both results as vectors.
        largest: largest difference, relative to the largest value.
        agreement: share of the rows, along the last axis, whose largest value stands at the same
            place; 1 where rows have one value.
    """

    error: float
    squared: float
    cosine: float
    largest: float
    agreement: float

    @property
    def text(self) -> str:
        """The figures in one line."""
        return (
            f"normalised mean squared error {self.squared:.1e}, cosine {self.cosine:.6f}, largest "
            f"difference {self.largest:.1e} of the largest value, same top-1 in "
            f"{100 * self.agreement:.1f} %"
        )


@dataclass(frozen=True)
class ErrorBudget:
    """The allowed deviation of results from those in float32.

    Attributes:
        limit: of the metric.
        metric: a function of the expected and the actual array of one output.
    """

    limit: float
    metric: Metric


def squared_error(expected: Array, actual: Array) -> float:
    """The normalised mean squared error: sum of squared differences over sum of squared expected
    values. It is infinite if different elements are NaN or infinite.

    For integers and truth values, it is the share of the elements that differ.
    """
    if not _is_float(expected):
        return float(np.mean(expected != actual)) if expected.size else 0.0
    pair = _finite(expected, actual)
    if pair is None:
        return float("inf")
    difference, total = float(np.sum((pair[1] - pair[0]) ** 2)), float(np.sum(pair[0] ** 2))
    return difference / total if total else (float("inf") if difference else 0.0)


def deviation(expected: Sequence[Array], actual: Sequence[Array], metric: Metric) -> Deviation:
    """The deviation of a network's outputs; infinite where their number or shapes differ."""
    shapes = [[array.shape for array in arrays] for arrays in (expected, actual)]
    if shapes[0] != shapes[1]:
        return Deviation(float("inf"), float("inf"), -1.0, float("inf"), 0.0)
    return worst([_of_output(e, a, metric) for e, a in zip(expected, actual, strict=True)])


def worst(found: Sequence[Deviation]) -> Deviation:
    """The worst value of each figure; no deviation for an empty list."""
    return Deviation(
        max((one.error for one in found), default=0.0),
        max((one.squared for one in found), default=0.0),
        min((one.cosine for one in found), default=1.0),
        max((one.largest for one in found), default=0.0),
        min((one.agreement for one in found), default=1.0),
    )


def _of_output(expected: Array, actual: Array, metric: Metric) -> Deviation:
    error, squared = float(metric(expected, actual)), squared_error(expected, actual)
    pair = _finite(expected, actual) if _is_float(expected) else None
    if pair is None:
        same = squared == 0
        return Deviation(error, squared, float(same), 0.0 if same else float("inf"), 1.0 - squared)
    e, a = pair
    lengths = float(np.sqrt(np.sum(e**2) * np.sum(a**2)))
    cosine = float(np.sum(e * a)) / lengths if lengths else float(squared == 0)
    top = float(np.max(np.abs(e), initial=0.0))
    apart = float(np.max(np.abs(a - e), initial=0.0))
    largest = apart / top if top else (float("inf") if apart else 0.0)
    return Deviation(error, squared, cosine, largest, _agreement(expected, actual))


def _agreement(expected: Array, actual: Array) -> float:
    if not expected.size or not expected.ndim:
        return 1.0
    return float(np.mean(np.argmax(expected, axis=-1) == np.argmax(actual, axis=-1)))


def _is_float(array: Array) -> bool:
    return array.dtype.kind in "fV"  # bfloat16 has no kind of its own


def _finite(expected: Array, actual: Array) -> tuple[Array, Array] | None:
    """The finite elements in float64; None if the other elements are not equal."""
    e, a = (np.asarray(array, np.float64).reshape(-1) for array in (expected, actual))
    finite = np.isfinite(e)
    if (
        not np.array_equal(e[~finite], a[~finite], equal_nan=True)
        or not np.isfinite(a[finite]).all()
    ):
        return None
    return e[finite], a[finite]
