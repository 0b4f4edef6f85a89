"""The benchmark of exported networks makes its promised comparisons."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tvm import te

import ansor
from benchmarks.plain_tvm import FINAL, OWN, TRACES, measure
from benchmarks.plain_tvm_case import PlainCase, _loaded


def tuned() -> ansor.TunedModel:
    """A function of one input."""
    x = te.placeholder((64, 64), name="x")
    y = te.compute((64, 64), lambda i, j: te.max(x[i, j], 0.0) + 1.0, name="y")
    return ansor.auto_schedule([x, y], trials=0, threads=2)


def test_plain_tvm_computes_the_same(tmp_path: Path) -> None:
    model = tuned()
    model.save(tmp_path / "own")
    model.export_metaschedule(tmp_path / "final")
    told = [
        _loaded(PlainCase(str(tmp_path / name), (64, 64), 2, 0.0))[0] for name in ("own", "final")
    ]
    assert np.allclose(told[0]["first_outputs"], told[1]["first_outputs"])


@pytest.mark.slow
def test_exports_take_turns_with_the_network() -> None:
    rows = {row.system: row for row in measure(tuned(), rounds=1, seconds=0.01)}
    assert list(rows) == [OWN, FINAL, TRACES]
    assert rows[OWN].to_own == pytest.approx(1)
    assert all(row.latency_ms > 0 and row.max_rel_err < 1e-5 for row in rows.values())
