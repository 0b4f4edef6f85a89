"""Sums of tasks against a pocket calculator."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.task_scheduler.networks import Networks
from ansor.task_scheduler.objective import GeometricSpeedup, LatencyRequirement, total_latency

CALLS = np.array([[2, 1, 2], [0, 4, 0]])  # the first and the third task are variants
GROUPS = ("f", "g", "f")


def test_the_fastest_variant_counts() -> None:
    networks = Networks(CALLS, GROUPS, total_latency)
    assert networks.latency_s([3.0, 5.0, 1.0]) == pytest.approx([2 * 1.0 + 5.0, 4 * 5.0])
    assert networks.latency_s([3.0, 5.0, None]) == pytest.approx([2 * 3.0 + 5.0, 4 * 5.0])
    assert networks.latency_s([3.0, None, 1.0]) is None


def test_weights_are_calls_times_slopes() -> None:
    networks = Networks(CALLS, GROUPS, LatencyRequirement([1.0, 100.0]))
    found = networks.weights([3.0, 5.0, 1.0], [True] * 3)
    assert found == pytest.approx([2, 1, 2]), "the second network is fast enough"


def test_each_second_counts_until_all_have_begun() -> None:
    networks = Networks(CALLS, GROUPS, LatencyRequirement(100.0))
    assert networks.weights([3.0, None, None], [True, False, False]) == pytest.approx([2, 5, 2])
    begun = networks.weights([3.0, None, None], [True, True, False])
    assert begun == pytest.approx([0, 4, 0]), "of the second network nothing works"


def test_without_tasks_nothing_adds_up() -> None:
    networks = Networks(np.zeros((1, 0), dtype=int), (), total_latency)
    assert networks.latency_s([]) == pytest.approx([0.0])
    assert networks.weights([], []).shape == (0,)


def test_the_goal_and_the_reference_of_an_objective_are_those_of_all_networks() -> None:
    calls = np.array([[1], [2]])
    limited = Networks(calls, ["a"], LatencyRequirement(0.5))
    assert (limited.goal_s, limited.reference_s) == (1.0, None)
    assert Networks(calls, ["a"], LatencyRequirement((0.5, 2.0))).goal_s == 2.5
    compared = Networks(calls, ["a"], GeometricSpeedup((0.5, 2.0)))
    assert (compared.goal_s, compared.reference_s) == (None, 2.5)
    free = Networks(calls, ["a"], total_latency)
    assert (free.goal_s, free.reference_s) == (None, None)
