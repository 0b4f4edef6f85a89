"""Objectives and their slopes against derivatives on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.errors import ArgumentError
from ansor.task_scheduler.objective import (
    GeometricSpeedup,
    LatencyRequirement,
    slopes,
    total_latency,
)

LATENCIES = st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=5).map(np.array)


@given(LATENCIES)
def test_every_second_counts_the_same_in_a_sum(latency_s: np.ndarray) -> None:
    assert total_latency(latency_s) == pytest.approx(sum(latency_s.tolist()))
    # A sum of numbers far apart leaves few digits to the difference.
    assert slopes(total_latency, latency_s) == pytest.approx(np.ones(len(latency_s)), rel=1e-5)


def test_a_network_that_is_fast_enough_is_worth_nothing() -> None:
    objective = LatencyRequirement([5e-3, 5e-3, 1e-3])
    assert objective(np.array([4e-3, 8e-3, 3e-3])) == pytest.approx(5e-3 + 8e-3 + 3e-3)
    assert slopes(objective, np.array([4e-3, 8e-3, 3e-3])) == pytest.approx([0.0, 1.0, 1.0])


def test_one_requirement_serves_all() -> None:
    found = slopes(LatencyRequirement(5e-3), np.array([4e-3, 8e-3]))
    assert found == pytest.approx([0.0, 1.0])


def test_just_above_a_requirement_less_than_a_step_is_left() -> None:
    (found,) = slopes(LatencyRequirement(1.0), np.array([1.005]))
    assert found == pytest.approx(0.005 / 0.01005)


@given(LATENCIES)
def test_a_second_of_a_fast_network_weighs_more_in_a_mean(latency_s: np.ndarray) -> None:
    """d/dx of -(prod B/x)^(1/m) is its value over -m x; the step of one per cent shows."""
    objective = GeometricSpeedup([1.0] * len(latency_s))
    value = -(math.prod((1.0 / latency_s).tolist()) ** (1 / len(latency_s)))
    assert objective(latency_s) == pytest.approx(value)
    derivative = -value / (len(latency_s) * latency_s)
    assert slopes(objective, latency_s) == pytest.approx(derivative, rel=0.02)


def test_references_scale_a_mean() -> None:
    assert GeometricSpeedup([8.0, 2.0])(np.array([2.0, 2.0])) == pytest.approx(-2.0)


def test_any_function_will_do() -> None:
    def slowest(latency_s: np.ndarray) -> float:
        return float(latency_s.max())

    assert slopes(slowest, np.array([1.0, 3.0, 2.0])) == pytest.approx([0.0, 1.0, 0.0])
    assert slopes(slowest, np.array([3.0, 3.0, 0.0])) == pytest.approx([1.0, 1.0, 0.0])


def test_an_objective_cannot_change_what_it_is_given() -> None:
    def spoils(latency_s: np.ndarray) -> float:
        latency_s *= 2
        return float(latency_s.sum())

    latency_s = np.array([1.0, 2.0])
    assert slopes(spoils, latency_s) == pytest.approx([2.0, 2.0])
    assert latency_s.tolist() == [1.0, 2.0]


def test_a_network_without_functions_is_worth_nothing() -> None:
    assert slopes(total_latency, np.array([0.0, 1.0])) == pytest.approx([0.0, 1.0])
    zero, _ = slopes(GeometricSpeedup([1.0, 1.0]), np.array([0.0, 1.0]))
    assert zero == 0.0


@pytest.mark.parametrize(
    ("objective", "text"),
    [
        (lambda latency_s: float("nan"), "finite number"),
        (lambda latency_s: "fast", "array of 2 latencies"),
        (lambda latency_s: latency_s, "array of 2 latencies"),
        (lambda a, b: a + b, "array of 2 latencies"),
        (lambda latency_s: -latency_s.sum(), "must not grow"),
        (LatencyRequirement([1.0, 1.0, 1.0]), "array of 2 latencies"),
        (LatencyRequirement([1.0]), "array of 2 latencies"),
        (GeometricSpeedup([1.0]), "array of 2 latencies"),
        (GeometricSpeedup([1.0, 1.0, 1.0]), "array of 2 latencies"),
    ],
)
def test_what_is_no_objective_is_refused(objective: object, text: str) -> None:
    with pytest.raises(ArgumentError, match=text) as caught:
        slopes(objective, np.array([1.0, 2.0]))  # type: ignore[arg-type]
    assert "objective" in str(caught.value)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), [], [1.0, 0.0]])
def test_seconds_must_be_positive(seconds: float) -> None:
    with pytest.raises(ArgumentError, match="seconds"):
        LatencyRequirement(seconds)
    with pytest.raises(ArgumentError, match="reference_s"):
        GeometricSpeedup([seconds] if isinstance(seconds, float) else seconds)
