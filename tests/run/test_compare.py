"""Allowed differences of results from the original's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.run.check.compare import NETWORK_TOLERANCE, OPERATOR_TOLERANCE, difference

NAN, INF = float("nan"), float("inf")


def excess(found: object, expected: object, dtype: str = "float32") -> float:
    arrays = [np.array(found, dtype)], [np.array(expected, dtype)]
    return difference(*arrays, NETWORK_TOLERANCE).excess


@given(st.lists(st.floats(width=32), min_size=1, max_size=8))
def test_equal_results_do_not_differ(values: list[float]) -> None:
    assert excess(values, values) == 0


@given(st.integers(-100, 100), st.sampled_from(["int32", "int64", "bool", "uint8"]))
def test_integers_must_be_equal(value: int, dtype: str) -> None:
    first = np.array([value % 2], dtype)
    assert difference([first], [first], NETWORK_TOLERANCE).excess == 0
    assert difference([first], [1 - first.astype("int8")], NETWORK_TOLERANCE).excess == INF


@pytest.mark.parametrize(
    ("found", "expected"),
    [([1.0, NAN], [1.0, 2.0]), ([1.0, 2.0], [1.0, NAN]), ([1.0, INF], [1.0, -INF])],
)
def test_nans_and_infinities_stand_where_they_should(
    found: list[float], expected: list[float]
) -> None:
    assert excess(found, expected) == INF


@given(st.floats(1e-3, 1e3), st.floats(0.1, 10))
def test_the_error_is_relative_to_the_largest_value(scale: float, times: float) -> None:
    allowed = NETWORK_TOLERANCE["float64"]
    expected = np.array([scale, scale / 2])
    found = expected + np.array([0, scale * allowed * times])
    result = difference([found], [expected], NETWORK_TOLERANCE)
    assert result.excess == pytest.approx(times, rel=1e-3)
    assert result.relative == pytest.approx(allowed * times, rel=1e-3)


@pytest.mark.parametrize("other", [np.zeros((2, 1), "f4"), np.zeros(2, "f8"), np.zeros(3, "f4")])
def test_shapes_and_dtypes_count(other: np.ndarray) -> None:
    assert difference([other], [np.zeros(2, "f4")], OPERATOR_TOLERANCE).excess == INF


def test_the_number_of_outputs_counts() -> None:
    assert difference([], [np.zeros(2)], NETWORK_TOLERANCE).excess == INF


def test_the_worst_output_is_named() -> None:
    expected = [np.ones(2, "f4"), np.ones(2, "f4")]
    found = [np.ones(2, "f4"), np.array([1, 1.5], "f4")]
    assert "output 1 differs by 0.5" in difference(found, expected, NETWORK_TOLERANCE).text


def test_empty_results_are_equal() -> None:
    assert excess([], []) == 0
