"""The benchmark of precisions, up to what it does with figures."""

from __future__ import annotations

import pytest

from benchmarks.precisions import Row, rows


def test_ratios_are_taken_in_each_round() -> None:
    """A round in which the machine is slow changes both sides of its ratio."""
    samples = {"auto": [1.0, 4.0, 2.0], "float32": [2.0, 10.0, 5.0]}
    auto, single = rows("net", samples, {"auto": 7, "float32": 3})
    assert auto == Row("net", "auto", 2.0, 1.0, 7)
    assert (single.latency_ms, single.trials) == (5.0, 3)
    assert single.ratio == pytest.approx(0.4)
