"""The networks that compete in the end, and the order in which they are taken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansor.run.candidates import fastest_first, near_fastest

MIXTURE, WIDE, SHORT = (
    SimpleNamespace(tasks=name, short=frozenset(calls))
    for name, calls in (("mixture", {1}), ("wide", ()), ("short", {1, 2}))
)


def rivals(seconds: dict[str, float | None], most: int | None = None) -> list[str]:
    tuner: Any = SimpleNamespace(seconds_of=seconds.get)
    mixture: Any = MIXTURE
    pure: Any = (WIDE, SHORT)
    return [str(network.tasks) for network in near_fastest(mixture, pure, tuner, most)]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({"mixture": 1.0, "wide": 2.0, "short": 1.05}, ["mixture", "short"]),
        ({"mixture": 1.0, "wide": 1.02, "short": 1.01}, ["mixture", "short", "wide"]),
        ({"mixture": 2.0, "wide": 1.0, "short": 3.0}, ["wide"]),
        ({"mixture": 1.0, "wide": None, "short": None}, ["mixture"]),
        ({}, ["mixture"]),
    ],
)
def test_what_comes_near_the_fastest_competes(
    seconds: dict[str, float | None], expected: list[str]
) -> None:
    assert rivals(seconds) == expected
    assert rivals(seconds, most=1) == expected[:1]


def test_a_network_is_not_its_own_rival() -> None:
    mixture: Any = SimpleNamespace(tasks="mixture", short=SHORT.short)
    pure: Any = (WIDE, SHORT)
    tuner: Any = SimpleNamespace(seconds_of=lambda tasks: 1.0)
    assert near_fastest(mixture, pure, tuner, None) == [mixture, WIDE]


def test_networks_are_taken_in_the_order_of_their_medians() -> None:
    """One disturbed turn does not matter."""
    turns = {"slow": [2.0] * 7, "fast": [9.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], "middle": [1.5] * 7}

    def model(name: str) -> Any:
        times = iter(turns[name])
        timed = SimpleNamespace(latency=lambda min_time_s, repeats: next(times))
        return SimpleNamespace(compiled=timed)

    assert fastest_first([model(name) for name in turns]) == [1, 2, 0]
