"""A clock that advances only on request, for tests of timing on a busy machine."""

from __future__ import annotations

from types import ModuleType

import pytest


class Clock:
    """Stands for the module `time`."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def perf_counter(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def with_clock(patch: pytest.MonkeyPatch, module: ModuleType) -> Clock:
    """A clock that the module takes its times from."""
    clock = Clock()
    patch.setattr(module, "time", clock)
    return clock
