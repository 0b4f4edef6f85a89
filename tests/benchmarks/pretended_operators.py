"""The benchmark of operators in this process, and children that only pretend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

from ansor.closing import Closing
from ansor.compare.system_process import ChildError
from benchmarks import operators
from benchmarks.operator_case import Case


def run(tmp_path: Path, *arguments: str) -> Any:
    """Runs the benchmark; returns the JSON that it wrote."""
    file = tmp_path / "operators.json"
    quick = ["--rounds", "1", "--seconds", "0.02", "--cache", str(tmp_path / "cache")]
    result = CliRunner().invoke(operators.main, [*arguments, *quick, "--json", str(file)])
    assert result.exception is None, result.output
    return json.loads(file.read_text())


class Pretending(Closing):
    """A child of few words: its turns take 2 s on a machine of 100 GFLOP/s, of PyTorch 6 s.

    MetaSchedule finds nothing.
    """

    def __init__(self, case: Case, system: str) -> None:
        self.system = system
        np.save(case.file(f"{system}.npy"), np.zeros(1, dtype=np.float32))

    def ask(self, what: str) -> dict[str, float]:
        if self.system == "metaschedule":
            raise ChildError("no program after 8 trials")
        ours = {"latency_s": 2.0, "peak_gflops": 100.0}
        turn = ours if self.system == "ansor" else {"latency_s": 6.0}
        return {} if what == "ready" else turn

    def close(self) -> None:
        pass
