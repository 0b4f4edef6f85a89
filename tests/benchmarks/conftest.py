"""The tiny network, known to this process and to the processes that a comparison starts."""

from __future__ import annotations

import pytest
import tiny_network

from ansor.compare import rounds
from ansor.models import registry


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> str:
    """Its name."""
    monkeypatch.setattr(registry, "CONFIGS", tiny_network.CONFIGS)
    monkeypatch.setattr(rounds, "ENTRY", (tiny_network.__file__,))
    return tiny_network.NAME
