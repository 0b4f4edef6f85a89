"""The benchmark of recurrent layers writes what it promises; with a short search."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")

from benchmarks import recurrent


@pytest.mark.slow
def test_a_layer_is_compared_with_pytorch(tmp_path: Path) -> None:
    file = tmp_path / "recurrent.json"
    quick = ["--kinds", "gru", "--minutes", "0.1", "--rounds", "1", "--seconds", "0.01"]
    result = CliRunner().invoke(recurrent.main, [*quick, "--json", str(file)])
    assert result.exception is None, result.output
    written = json.loads(file.read_text())
    assert written["environment"]["sizes"]["steps"] == 20
    rows = {row["system"]: row for row in written["results"]}
    assert rows["ansor"]["to_own"] == pytest.approx(1)
    assert len(rows) >= 2
    assert all(row["latency_ms"] > 0 and row["max_rel_err"] < 1e-4 for row in rows.values())


def test_an_unknown_kind_ends_everything_before_it_begins() -> None:
    result = CliRunner().invoke(recurrent.main, ["--kinds", "esn"])
    assert result.exit_code == 2
    assert "kinds are lstm, gru, rnn" in result.output
