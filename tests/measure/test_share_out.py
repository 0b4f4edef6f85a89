"""Workers lend themselves for other work, and nothing that happens to it is lost."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import measure_faults
import pytest

from ansor.config import MeasureConfig
from ansor.measure.local_device import LocalDevice

CONFIG = MeasureConfig(workers=2, verify_timeout_s=2.0)


@pytest.fixture(scope="module")
def device() -> Iterator[LocalDevice]:
    with LocalDevice("llvm", 2, CONFIG) as opened:
        opened.start()
        opened._pool.settle()
        yield opened


needs_two_cores = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="one worker, which would only take turns with us"
)


@needs_two_cores
def test_results_come_in_the_order_of_the_arguments_from_both_workers(device: LocalDevice) -> None:
    found = device.share(measure_faults.delayed, [(0.1 * (3 - i), i) for i in range(4)])
    assert [value for value, _ in found] == [0, 1, 2, 3]
    pids = {pid for _, pid in found}
    assert len(pids) == 2
    assert os.getpid() not in pids


def test_one_call_is_not_worth_a_journey(device: LocalDevice) -> None:
    assert device.share(measure_faults.delayed, [(0.0, 5)]) == [(5, os.getpid())]
    assert device.share(measure_faults.delayed, []) == []


@needs_two_cores
@pytest.mark.parametrize("fault", ["exit", "hang"])
def test_what_a_worker_dies_of_is_done_here(device: LocalDevice, fault: str) -> None:
    before = device.replaced
    found = device.share(measure_faults.only_here, [(os.getpid(), fault), (os.getpid(), "")])
    assert found[0] == os.getpid()
    assert found[1] != os.getpid()
    assert device.replaced == before + 1
    assert len(device.share(measure_faults.delayed, [(0.0, 1), (0.0, 2)])) == 2


@needs_two_cores
def test_an_error_is_raised_where_the_work_is_wanted(device: LocalDevice) -> None:
    with pytest.raises(ZeroDivisionError):
        device.share(divmod, [(1, 1), (1, 0)])
    assert device.share(divmod, [(7, 2), (9, 4)]) == [(3, 1), (2, 1)]


@needs_two_cores
def test_until_a_worker_is_there_the_work_goes_on_here() -> None:
    with LocalDevice("llvm", 2, CONFIG) as fresh:
        began = time.monotonic()
        (first, here), *_ = fresh.share(measure_faults.delayed, [(0.0, i) for i in range(3)])
        assert (first, here) == (0, os.getpid())
        assert time.monotonic() - began < 0.5, "a worker takes longer to start"
