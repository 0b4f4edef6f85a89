"""The fake device keeps its promises: deterministic, counted, faults on demand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansor.measure import Device, ErrorKind, FakeDevice
from ansor.program.program import Program

TASK: Any = SimpleNamespace(key="t")
PROGRAMS = [Program("s", (), {"tile": (i,)}) for i in range(4)]


def latency_of(task: Any, program: Program) -> float:
    return 1e-3 * (1 + program.values["tile"][0])


def test_counts_and_records_every_measurement() -> None:
    device: Device
    with FakeDevice(latency_of) as device:
        found = device.measure(TASK, PROGRAMS, None)
    assert [m.latency_s for m in found] == pytest.approx([1e-3, 2e-3, 3e-3, 4e-3])
    assert isinstance(device, FakeDevice)
    assert device.count == 4
    assert device.trace == [("t", p) for p in PROGRAMS]
    assert device.closed


@pytest.mark.parametrize("kind", [k for k in ErrorKind if k is not ErrorKind.WRONG])
def test_injects_each_fault(kind: ErrorKind) -> None:
    device = FakeDevice(latency_of, lambda _, p: kind if p is PROGRAMS[1] else None)
    found = device.measure(TASK, PROGRAMS, None)
    assert [m.error for m in found] == [None, kind, None, None]
    assert found[1].latency_s is None
    assert device.verify([(TASK, PROGRAMS[1])])[0].error is kind
    assert device.compare(TASK, PROGRAMS[:2], 3) == [1e-3, None]


def test_a_wrong_program_is_fast_but_fails_verification() -> None:
    device = FakeDevice(latency_of, lambda *_: ErrorKind.WRONG)
    assert device.measure(TASK, PROGRAMS, None)[0].error is None
    assert device.verify([(TASK, PROGRAMS[0])])[0].error is ErrorKind.WRONG


def test_interrupts_once_at_the_nth_measurement() -> None:
    device = FakeDevice(latency_of, interrupt_at=3)
    with pytest.raises(KeyboardInterrupt):
        device.measure(TASK, PROGRAMS, None)
    assert device.count == 2
    assert len(device.measure(TASK, PROGRAMS, None)) == 4
