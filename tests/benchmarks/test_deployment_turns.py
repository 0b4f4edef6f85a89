"""The benchmark of exported networks: who begins changes, and the ratio is of each turn."""

from __future__ import annotations

from typing import Any

from benchmarks.deployment import Turn, measure


class Counted:
    """A case whose times count the processes."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def python_s(self) -> float:
        self.order.append("python")
        return float(len(self.order))

    def cpp_s(self) -> float:
        self.order.append("cpp")
        return float(len(self.order))


def test_the_first_of_a_turn_changes() -> None:
    case: Any = Counted()
    assert measure(case, 3) == [Turn(1.0, 2.0), Turn(4.0, 3.0), Turn(5.0, 6.0)]
    assert case.order == ["python", "cpp", "cpp", "python", "python", "cpp"]


def test_the_ratio() -> None:
    assert Turn(python_s=2.0, cpp_s=1.0).ratio == 0.5
