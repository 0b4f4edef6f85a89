"""Summaries of comparisons, with results computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.operator_summary import lines, reached_s, summary


def row(
    op: str, system: str, latency_us: float | None, to_own: float | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "op": op,
        "system": system,
        "latency_us": latency_us,
        "to_own": to_own,
        "tuning_s": None,
        "trials": None,
        **more,
    }


ROWS = [
    row("A", "ansor", 10.0, best_so_far=[[1.0, 30.0], [2.0, 18.0], [4.0, 10.0]]),
    row("A", "torch", 40.0, 4.0),
    row("A", "torch_channels_last", 21.0, 2.0),
    row("A", "metaschedule", 20.0, 2.0, tuning_s=100.0, trials=128),
    row("B", "ansor", 8.0, best_so_far=[[1.0, None], [3.0, 9.0], [5.0, 8.0]]),
    row("B", "torch", 4.0, 0.5),
    row("B", "metaschedule", 2.0, 0.25, tuning_s=50.0, trials=128),
    row("C", "ansor", None),
    row("C", "torch", 5.0),
]


def test_ratios_are_of_the_peers_better_layout() -> None:
    torch, metaschedule = summary(ROWS)
    assert torch["peer"] == "torch"
    assert torch["ops"] == 2  # the third did not run here
    assert torch["geomean"] == pytest.approx((2.0 * 0.5) ** 0.5)
    assert (torch["least"], torch["least_op"]) == (0.5, "B")
    assert "time_share" not in torch
    assert metaschedule["geomean"] == pytest.approx((2.0 * 0.25) ** 0.5)


def test_time_until_a_peer_is_reached() -> None:
    assert reached_s(ROWS[0], 20.0) == 2.0
    assert reached_s(ROWS[0], 5.0) is None
    (_, metaschedule) = summary(ROWS)
    assert metaschedule["reached"] == 1  # B never got to 2 us
    assert metaschedule["time_share"] == pytest.approx(2.0 / 100.0)


def test_nothing_in_common_is_no_summary() -> None:
    assert summary([row("A", "ansor", None), row("A", "torch", 3.0)]) == []
    assert summary([row("A", "ansor", 3.0)]) == []


def test_dtypes_are_kept_apart() -> None:
    low = [{**row, "dtype": "int8", "to_own": 3.0} for row in ROWS[:2]]
    found = summary([*ROWS, *low])
    assert [(entry["dtype"], entry["peer"], entry["ops"]) for entry in found] == [
        ("float32", "torch", 2),
        ("float32", "metaschedule", 2),
        ("int8", "torch", 1),
    ]
    assert found[-1]["geomean"] == pytest.approx(3.0)


def test_lines_name_the_peer_and_its_least() -> None:
    first, second = lines(summary(ROWS))
    assert first.startswith("float32, torch: 1.00 x")
    assert "least 0.50 (B)" in first
    assert "0.020 of its tuning time (median of 1 of 2)" in second
