"""Sums of tasks against a pocket calculator."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.task_scheduler.networks import Networks
from ansor.task_scheduler.objective import LatencyRequirement, total_latency

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
