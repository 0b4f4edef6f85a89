"""The tiny network, known to this process and to those it starts, and a quiet machine."""

from __future__ import annotations

import pytest
import tiny_network

from ansor.compare import rounds
from ansor.models import registry
from benchmarks import operators
from benchmarks.neighbours import Neighbours


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> str:
    """Its name."""
    monkeypatch.setattr(registry, "CONFIGS", tiny_network.CONFIGS)
    monkeypatch.setattr(rounds, "ENTRY", (tiny_network.__file__,))
    return tiny_network.NAME


@pytest.fixture
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peak of 100 GFLOP/s that need not be measured, and cores that are never waited for: beside
    other tests they would seem apart until all patience is spent."""
    near = Neighbours(lambda: 1e-6, 1e-6)
    monkeypatch.setattr(operators, "peak_flops", lambda *_, **__: 100e9)
    monkeypatch.setattr(operators, "neighbours_of", lambda *_: near)
