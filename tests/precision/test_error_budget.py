"""The error of results, and which functions go back to float32 when it is too large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ansor.errors import ArgumentError
from ansor.run.check.deviation import Deviation, deviation, squared_error, worst
from ansor.run.precision.assignment import within_budget
from ansor.run.precision.sensitivity import Sensitivities

ROWS = arrays(np.float32, (4, 3), elements=st.floats(-100, 100, width=16))


@given(ROWS)
def test_equal_results_have_no_error(array: Any) -> None:
    found = deviation([array], [array], squared_error)
    cosine = 1.0 if array.any() or not array.size else found.cosine
    assert found == Deviation(0.0, 0.0, pytest.approx(cosine), 0.0, 1.0)  # type: ignore[arg-type]


@given(ROWS, ROWS, st.sampled_from([2.0, -8.0, 0.25]))
def test_the_error_does_not_depend_on_the_scale(expected: Any, actual: Any, scale: float) -> None:
    found = squared_error(expected, actual)
    assert squared_error(scale * expected, scale * actual) == pytest.approx(found, rel=1e-6)


@given(ROWS, ROWS)
def test_an_error_bounds_the_cosine(expected: Any, actual: Any) -> None:
    found = deviation([expected], [actual], squared_error)
    if found.squared < 1 and expected.any():
        assert found.cosine >= np.sqrt(1 - found.squared) - 1e-6


def test_figures_of_a_known_case() -> None:
    expected = np.array([[3.0, 4.0], [0.0, 5.0]], np.float32)
    actual = np.array([[4.0, 3.0], [0.0, 5.0]], np.float32)
    found = deviation([expected], [actual], squared_error)
    assert found.squared == pytest.approx(2 / 50)
    assert found.cosine == pytest.approx(49 / 50)
    assert found.largest == pytest.approx(1 / 5)
    assert found.agreement == 0.5


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_not_finite_has_an_infinite_error(wrong: float) -> None:
    expected, actual = np.ones(3, np.float32), np.array([1, wrong, 1], np.float32)
    assert squared_error(expected, actual) == np.inf
    assert squared_error(actual, expected) == np.inf
    assert squared_error(actual, actual) == 0


def test_integers_count_by_their_share() -> None:
    assert squared_error(np.array([1, 2, 3, 4]), np.array([1, 2, 3, 9])) == 0.25


def test_other_shapes_are_wrong() -> None:
    assert deviation([np.ones(3)], [np.ones((3, 1))], squared_error).error == np.inf


def test_the_metric_of_the_user_has_the_budget() -> None:
    found = deviation([np.ones(3)], [np.ones(3) * 2], lambda e, a: float(np.abs(e - a).max()))
    assert found.error == 1
    assert worst([found, Deviation(3, 0, 1, 0, 1)]).error == 3


@dataclass(frozen=True)
class FakeForms:
    """Functions with one call each; a module is the set of calls that are short."""

    errors: tuple[float, ...]
    operations: tuple[int, ...] = ()

    def operations_of(self, function: str) -> int:
        return self.operations[int(function[1:])] if self.operations else 1

    @property
    def multiplying(self) -> frozenset[int]:
        return frozenset(range(len(self.errors)))

    def function_of(self, call: int) -> str:
        return f"f{call}"

    def calls_of(self, functions: Any) -> frozenset[int]:
        return frozenset(int(name[1:]) for name in functions)


def assigned(
    errors: tuple[float, ...],
    limit: float,
    monkeypatch: pytest.MonkeyPatch,
    share: float = 1.0,
    operations: tuple[int, ...] = (),
) -> Any:
    """The assignment of a network whose errors add up, with one of 0.1 in float32."""
    monkeypatch.setattr("ansor.run.precision.sensitivity.with_short", lambda forms, short: short)

    def deviation_of(short: Any) -> Deviation:
        error = 0.1 + sum(errors[number] for number in short)
        return Deviation(error, error, 1, error, 1)

    forms: Any = FakeForms(errors, operations)
    return within_budget(forms, Sensitivities(forms, deviation_of), limit, share)


def test_within_the_budget_all_products_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    found = assigned((1.0, 2.0), 4.0, monkeypatch)
    assert found.short == {0, 1}
    assert not found.reasons


def test_the_most_sensitive_functions_go_back_first(monkeypatch: pytest.MonkeyPatch) -> None:
    found = assigned((1.0, 4.0, 2.0, 3.0), 3.2, monkeypatch)
    assert found.short == {0, 2}
    assert set(found.reasons) == {"f1", "f3"}
    assert found.reasons["f1"] == "too sensitive: alone it makes an error of 4.1e+00"


def test_a_budget_that_nothing_meets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match=r"max_error=0\.05: .* the least error is 0\.1"):
        assigned((1.0, 2.0), 0.05, monkeypatch)


def test_a_share_of_the_limit_leaves_room_for_tuned_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert assigned((1.0, 2.0), 3.5, monkeypatch).short == {0, 1}
    assert assigned((1.0, 2.0), 3.5, monkeypatch, share=0.8).short == {0}


def test_what_is_sensitive_for_its_operations_goes_back_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert assigned((3.0, 2.0), 4.0, monkeypatch).short == {1}
    assert assigned((3.0, 2.0), 4.0, monkeypatch, operations=(100, 1)).short == {0}


def narrowed(
    errors: tuple[float, ...],
    tuned: Callable[[frozenset[int]], float],
    limit: float,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """The remaining short calls of a tuned network with its own errors."""
    monkeypatch.setattr("ansor.run.precision.sensitivity.with_short", lambda forms, short: short)

    def deviation_of(short: Any) -> Deviation:
        error = 0.1 + sum(errors[number] for number in short)
        return Deviation(error, error, 1, error, 1)

    forms: Any = FakeForms(errors)
    everything = forms.multiplying
    found = Sensitivities(forms, deviation_of)
    return found.narrowed(everything, tuned(everything), limit, limit, tuned)


def test_of_a_tuned_network_only_the_sensitive_call_goes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = []

    def tuned(short: frozenset[int]) -> float:
        tried.append(short)
        return 0.2 + (9.0 if 2 in short else 0.0) + 0.01 * len(short)

    found = narrowed((0.01, 0.02, 5.0, 0.03), tuned, 0.5, monkeypatch)
    assert (found.short, found.back) == ({0, 1, 3}, (2,))
    assert len(tried) == 2


def test_calls_of_a_tuned_network_go_back_until_it_is_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The order of sums makes an error that plain loops do not show, in the last of them."""

    def tuned(short: frozenset[int]) -> float:
        return 5.0 if 0 in short else 0.3

    assert narrowed((1.0, 3.0, 2.0), tuned, 0.5, monkeypatch).short == frozenset()
    unmet = narrowed((1.0, 3.0, 2.0), tuned, 0.2, monkeypatch)
    assert unmet.short is None
    assert unmet.least_error == 0.3


@pytest.mark.parametrize("whole", [float("inf"), float("nan")])
def test_an_error_that_is_no_number_takes_one_call_after_the_other(
    whole: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tuned(short: frozenset[int]) -> float:
        return whole if {0, 1} & short else 0.3

    assert narrowed((2.0, 3.0, 1.0), tuned, 0.5, monkeypatch).short == {2}
