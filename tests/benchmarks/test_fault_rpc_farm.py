"""The scenario of servers that die, hang and are restarted, in small."""

from __future__ import annotations

import pytest

from benchmarks.fault_scenarios import rpc_farm
from benchmarks.fault_scenarios.row import Scale


@pytest.mark.slow
def test_a_farm_with_faults() -> None:
    rows = rpc_farm.run(Scale.QUICK)
    assert [row.observed for row in rows if not row.holds] == []
