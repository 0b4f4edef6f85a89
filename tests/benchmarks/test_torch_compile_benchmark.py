"""The benchmark of `torch.compile` writes what it promises; without a search."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

absent = [name for name in ("torch", "torchvision", "transformers") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(absent), reason=f"needs {', '.join(absent)}")


@pytest.mark.slow
def test_a_network_is_compared_in_all_systems(tmp_path: Path) -> None:
    from benchmarks import torch_compile

    file = tmp_path / "torch_compile.json"
    quick = ["--models", "shufflenet_v2", "--trials", "0", "--rounds", "1", "--seconds", "0.01"]
    result = CliRunner().invoke(torch_compile.main, [*quick, "--json", str(file)])
    assert result.exception is None, result.output
    written = json.loads(file.read_text())
    rows = {row["system"]: row for row in written["results"]}
    assert {"eager", "auto_schedule", "ansor"} <= rows.keys()
    assert rows["auto_schedule"]["to_auto_schedule"] == pytest.approx(1)
    assert rows["ansor"]["graphs_in_pytorch"] == 0
    assert all(row["latency_ms"] > 0 and row["max_rel_err"] < 1e-3 for row in rows.values())


def test_an_unknown_network_ends_everything_before_it_begins() -> None:
    from benchmarks import torch_compile

    result = CliRunner().invoke(torch_compile.main, ["--models", "alexnet", "--trials", "0"])
    assert result.exit_code == 2
    assert "models are resnet18" in result.output


def test_an_unknown_system_ends_everything_before_it_begins() -> None:
    from benchmarks import torch_compile

    arguments = ["--models", "resnet18", "--systems", "xla", "--trials", "0"]
    result = CliRunner().invoke(torch_compile.main, arguments)
    assert result.exit_code == 2
    assert "systems are eager, inductor" in result.output
