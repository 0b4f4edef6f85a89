"""The scenario of mutated files notices refusals, answers, lies, errors and crashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ansor.errors import AnsorError
from benchmarks.fault_scenarios import mutated_files
from benchmarks.fault_scenarios.mutated_child import ACCEPTED, ERROR, LIE, REFUSED, outcome
from benchmarks.fault_scenarios.mutated_files import CRASH, outcomes
from benchmarks.fault_scenarios.mutated_subjects import LieError
from benchmarks.fault_scenarios.mutations import BYTES, Bytes, changed_lines


class Pretended:
    """A subject whose reader raises an error, or none."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error

    def mutate(self, folder: Path, random: np.random.Generator) -> Path:
        return folder

    def read(self, path: Path) -> None:
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, ACCEPTED),
        (AnsorError("no"), REFUSED),
        (LieError("other"), LIE),
        (KeyError("unforeseen"), ERROR),
    ],
)
def test_each_answer_has_its_outcome(
    tmp_path: Path, error: Exception | None, expected: str
) -> None:
    assert outcome(Pretended(error), tmp_path, np.random.default_rng(0))[0] == expected


def test_a_case_that_ends_the_process_is_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def batch(folder: Path, name: str, first: int, count: int) -> tuple[list[Any], str]:
        end = 2 if first == 0 else count
        return [
            {"case": i, "outcome": REFUSED, "detail": ""} for i in range(first, end)
        ], "-11: segmentation fault"

    monkeypatch.setattr(mutated_files, "_batch", batch)
    found = outcomes(tmp_path, "any", 5)
    assert [kind for kind, _ in found] == [REFUSED, REFUSED, CRASH, REFUSED, REFUSED]
    assert "case 2" in found[2][1]
    assert "-11" in found[2][1]


@pytest.mark.parametrize("change", [*BYTES, changed_lines])
def test_changes_are_those_of_their_seed(change: Bytes) -> None:
    lines = [b'{"a": [%d, "text %d"], "b": {"c": %d}}\n' % (i, i, i) for i in range(300)]
    data = b"".join(lines)
    once, again = (change(data, np.random.default_rng(3)) for _ in range(2))
    assert once == again != data
