"""Waiting until cores are near each other: as long as they are not, and not for ever."""

from __future__ import annotations

from benchmarks.neighbours import _TOTAL_S, _TURN_S, Neighbours

NEAR_S, FAR_S = 1e-6, 4e-6


class Machine:
    """Cores that are apart until a given second."""

    def __init__(self, apart_s: float = 0.0) -> None:
        self.now, self.apart_s = 0.0, apart_s

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def start_s(self) -> float:
        return FAR_S if self.now < self.apart_s else NEAR_S


def neighbours(machine: Machine, least_s: float = NEAR_S) -> Neighbours:
    return Neighbours(machine.start_s, least_s, machine.clock, machine.sleep)


def test_near_cores_are_not_waited_for() -> None:
    machine = Machine()
    found = neighbours(machine)
    found.wait()
    assert (machine.now, found.waited_s, found.far) == (0.0, 0.0, 0)


def test_it_waits_as_long_as_they_are_apart() -> None:
    machine = Machine(apart_s=3.0)
    found = neighbours(machine)
    found.wait()
    assert 3.0 <= machine.now <= 3.3
    assert found.waited_s == machine.now
    assert found.far == 0


def test_what_is_near_is_learned() -> None:
    """The case of an unknown machine whose cores are far apart at first."""
    machine = Machine(apart_s=3.0)
    found = neighbours(machine, least_s=1.0)
    found.wait()
    assert machine.now == 0.0  # as it knows no better
    machine.now = 5.0
    found.wait()
    machine.apart_s = 8.0
    found.wait()
    assert machine.now >= 8.0


def test_it_gives_up() -> None:
    machine = Machine(apart_s=1e9)
    found = neighbours(machine)
    for turn in range(1, 21):
        found.wait()
        assert machine.now <= turn * (_TURN_S + 0.3)
    assert _TOTAL_S <= machine.now <= _TOTAL_S + 0.3
    assert found.far == 20
    found.begin()
    found.wait()
    assert machine.now >= _TOTAL_S + _TURN_S
