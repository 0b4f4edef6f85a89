"""The fewest operators in float32 that meet a bound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.errors import ArgumentError
from ansor.quantization.budget import (
    Attempt,
    by_sensitivity,
    normalised_square_error,
    within_budget,
)

NAMES = [f"n{k}" for k in range(37)]


@given(st.integers(0, 37))
def test_the_fewest_nodes_in_few_attempts(needed: int) -> None:
    tried = []

    def attempt(excluded: Sequence[str]) -> Attempt:
        tried.append(len(excluded))
        assert list(excluded) == NAMES[: len(excluded)]
        return Attempt(None, float(37 - len(excluded)), tuple(excluded))

    found = within_budget(attempt, lambda _: NAMES, float(37 - needed))
    assert len(found.in_float) == needed
    assert len(tried) <= 13  # 1 + 7 doublings + 5 halvings
    assert len(set(tried)) == len(tried)


def test_without_a_bound_there_is_one_attempt() -> None:
    def ranked(_: Attempt) -> Sequence[str]:
        raise AssertionError

    assert within_budget(lambda _: Attempt("model", 9.0, ()), ranked, None).model == "model"


def test_a_bound_that_nothing_meets_says_what_is_possible() -> None:
    with pytest.raises(ArgumentError, match=r"max_error=0\.1.*the error is 0\.5"):
        within_budget(lambda names: Attempt(None, 0.5, tuple(names)), lambda _: NAMES, 0.1)


def test_nothing_to_leave_out() -> None:
    with pytest.raises(ArgumentError, match="allow as much"):
        within_budget(lambda names: Attempt(None, 0.5, tuple(names)), lambda _: (), 0.1)


def test_error_is_that_of_the_worst_output() -> None:
    a, b = np.array([3.0, 4.0]), np.array([[10.0]])
    expected = [[a, b], [a, b]]
    found = [[a + 1, b], [a, b + 1]]
    assert normalised_square_error(expected, found) == pytest.approx(2 / 50)
    assert normalised_square_error([[np.zeros(2)]], [[np.ones(2)]]) == 2


@given(st.dictionaries(st.sampled_from(NAMES), st.floats(1, 9), max_size=5))
def test_sensitive_nodes_come_first_after_few_measurements(sensitive: dict[str, float]) -> None:
    measured = []

    def error_of(group: Sequence[str]) -> float:
        measured.append(group)
        return sum(sensitive.get(name, 1e-6) for name in group)

    found = by_sensitivity(NAMES, error_of, negligible=0.1)
    assert sorted(found) == sorted(NAMES)
    errors = [sensitive.get(name, 0.0) for name in found]
    assert errors == sorted(errors, reverse=True)
    assert len(measured) <= 1 + 12 * len(sensitive)  # two halves on each of six levels


def test_no_nodes_have_no_order() -> None:
    assert by_sensitivity([], lambda _: 1.0, 0.1) == []
