"""Bad candidates of the benchmark of faults: which are bad, and a small search with each kind."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.fault_scenarios import bad_candidates
from benchmarks.fault_scenarios.faulty_programs import Fault, fault_of
from benchmarks.fault_scenarios.row import Scale


def test_a_fifth_is_bad_in_equal_parts() -> None:
    counts = Counter(fault_of(number) for number in range(1000))
    assert counts[None] == 800
    assert {counts[fault] for fault in Fault} == {18, 19}
    assert fault_of(0) is None


@pytest.mark.slow
def test_a_search_survives_one_candidate_of_each_kind() -> None:
    rows = bad_candidates.run(Scale.QUICK)
    assert [row.observed for row in rows if not row.holds] == []
