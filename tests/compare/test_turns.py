"""Systems take turns: both ends of what goes between processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansor.compare.system_process import Child, ChildError
from ansor.compare.turns import ratio, take_turns
from ansor.config import COMPARE

NOISY = """
from ansor.compare.turns import answer_turns

def load():
    print("loading")
    return {"loaded": True}, turn

def turn():
    print("running")
    return {"latency_s": 0.25}

answer_turns(load)
"""


def test_what_a_system_prints_is_no_answer() -> None:
    found = take_turns(lambda _: Child(["-c", NOISY], 1, 60.0), ["noisy"], 2, 1.0)
    assert found.told == {"noisy": {"loaded": True}}
    assert found.latencies_s("noisy") == ((0.25,) * COMPARE.turns,) * 2
    assert not found.missing


class Pretended:
    """A child that records its turns and fails in a given one."""

    def __init__(self, name: str, log: list[str], latency_s: float, fails: int) -> None:
        self.name, self.log, self.latency_s, self.left = name, log, latency_s, fails

    def ask(self, what: str) -> dict[str, Any]:
        if what == "ready":
            return {"name": self.name}
        self.log.append(self.name)
        self.left -= 1
        if self.left == 0:
            raise ChildError(f"{self.name} is out of order")
        return {"latency_s": self.latency_s}

    def close(self) -> None:
        self.log.append(f"{self.name} closed")


def pretended(log: list[str], failing: dict[str, int], slow: str = "") -> Callable[[str], Any]:
    """Starts such children; one called "absent" cannot be started."""

    def start(name: str) -> Any:
        if name == "absent":
            raise ChildError("not installed")
        return Pretended(name, log, 2.0 if name == slow else 0.5, failing.get(name, 0))

    return start


def test_neighbours_change_and_slow_ones_stop_early() -> None:
    log: list[str] = []
    found = take_turns(pretended(log, {}, slow="b"), "abc", 1, 1.0)
    assert "".join(log[:9]) == "abccaacca"
    assert log[-3:] == ["a closed", "b closed", "c closed"]
    counts = {name: len(*found.latencies_s(name)) for name in "abc"}
    assert counts == {"a": COMPARE.turns, "b": 1, "c": COMPARE.turns}
    assert found.told["c"] == {"name": "c"}


def test_before_each_turn_of_all_something_may_be_done() -> None:
    log: list[str] = []
    take_turns(pretended(log, {}), "ab", 2, 1.0, before=lambda: log.append("-"))
    turns = "".join(entry for entry in log if len(entry) == 1)
    assert turns == 2 * (COMPARE.turns // 2) * "-ab-ba"


def test_who_fails_is_missing_and_the_others_go_on() -> None:
    log: list[str] = []
    found = take_turns(pretended(log, {"b": 2}), ("a", "absent", "b"), 2, 1.0)
    assert found.missing == {"absent": "not installed", "b": "b is out of order"}
    assert list(found.answers) == ["a"]
    assert found.latencies_s("a") == ((0.5,) * COMPARE.turns,) * 2
    assert log.count("a closed") == 2  # a round each
    assert log.count("b closed") == 1


def test_all_are_closed_whatever_happens() -> None:
    log: list[str] = []

    class Interrupted(Pretended):
        def ask(self, what: str) -> dict[str, Any]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take_turns(lambda name: Interrupted(name, log, 0.5, 0), "a", 1, 1.0)  # type: ignore[arg-type, return-value]
    assert log == ["a closed"]


def test_ratios_pair_what_both_did() -> None:
    ours = ((1.0, 2.0, 4.0), (1.0, 1.0))
    slow = ((3.0, 8.0), (5.0,))
    assert ratio(slow, ours) == 4.0
    assert ratio(ours, ours) == 1.0
