"""Benchmarks write what they promise; on a tiny network and tiny operators."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

from ansor.cli import demo
from ansor.closing import Closing
from ansor.compare import rounds, systems
from ansor.compare.case import Case
from ansor.compare.child import timed
from ansor.compare.comparison_table import comparison_table
from ansor.compare.results import Comparison, SystemResult
from ansor.compare.rounds import compare, peer_systems
from ansor.compare.system_process import ChildError
from ansor.config import COMPARE
from ansor.errors import ArgumentError
from ansor.measure.result import Measurement
from benchmarks import environment, network, operators, throughput

ROW = {
    *("model", "system", "precision", "latency_ms", "to_own", "tuning_s", "trials"),
    *("max_rel_err", "squared_error", "cosine"),
}


def run(command: click.Command, *arguments: str, file: Path | None = None) -> Any:
    """Runs a benchmark; returns the JSON that it wrote."""
    options = [] if file is None else ["--json", str(file)]
    result = CliRunner().invoke(command, [*arguments, *options])
    assert result.exception is None, result.output
    return result.output if file is None else json.loads(file.read_text())


@pytest.mark.slow
def test_a_network_is_compared_with_what_is_installed(tiny: str, tmp_path: Path) -> None:
    options = ["--models", tiny, "--peers", "torch,onnxruntime", "--trials", "4"]
    quick = ["--rounds", "1", "--seconds", "0.05"]
    found = run(network.main, *options, *quick, file=tmp_path / "network.json")
    rows = {row["system"]: row for row in found["results"]}
    assert set(found) == {"environment", "results"}
    assert all(set(row) == ROW for row in rows.values())
    assert all(row["latency_ms"] > 0 and row["max_rel_err"] < 1e-4 for row in rows.values())
    assert rows["ansor"]["trials"] == 4
    assert rows["ansor"]["tuning_s"] > 0
    assert rows["untuned"]["tuning_s"] is None
    absent = found["environment"]["missing"][tiny]
    assert {*rows, *absent} == {
        "ansor", "untuned", "torch", "torch_channels_last", "onnxruntime"
    }  # fmt: skip
    assert ("torch" in rows) == (find_spec("torch") is not None)


def test_the_demo_ends_with_a_comparison(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "_start", Pretending)
    options = ["--model", tiny, "--trials", "0", "--peers", "", "--rounds", "1"]
    output = run(demo.demo, *options, "--out", str(tmp_path / "out"))
    assert "vs ansor" in output
    assert (tmp_path / "out" / "model.ansor").is_file()
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert output.splitlines()[-1] == f"report: {tmp_path / 'out' / 'report.html'}"
    assert 'id="chart-comparison"' in report


class Pretending(Closing):
    """A child that answers at once: 1 ms, 2 s untuned; Inductor fails."""

    def __init__(self, case: Case, system: str) -> None:
        self.system = system
        np.save(case.output(system), np.float32([2.0, -4.0 + 0.4 * (system == "ansor")]))

    def ask(self, what: str) -> dict[str, float]:
        if self.system == "inductor":
            raise ChildError("out of order")
        if what == "ready":
            return {}
        return {"latency_s": 2.0 if self.system == "untuned" else 1e-3}

    def close(self) -> None:
        pass


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """A case whose children only pretend."""
    monkeypatch.setattr(rounds, "_start", Pretending)
    monkeypatch.setattr(rounds, "run_child", lambda *_: None)  # no export
    return Case("resnet18", str(tmp_path), 1)


def test_what_is_not_installed_is_left_out_and_said_so(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systems, "find_spec", lambda name: None)
    found = compare(case, peer_systems(["torch", "onnxruntime", "openvino"]))
    assert [result.system for result in found.results] == ["ansor", "untuned"]
    assert found.missing["torch"] == "not installed: torch"
    assert set(found.missing) == {
        *("torch", "torch_channels_last", "onnxruntime", "openvino", "openvino_default")
    }
    assert "left out: openvino, not installed" in comparison_table(found)


def test_a_peer_that_fails_is_left_out(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "find_spec", lambda name: object())
    found = compare(case, ["inductor", "onnxruntime"])
    assert found.missing == {"inductor": "out of order"}
    assert found.results[-1].system == "onnxruntime"


def test_systems_take_turns_and_slow_ones_few(case: Case) -> None:
    found = compare(case, [], rounds=2)
    ours, untuned = found.results
    assert ours.samples_s == ((1e-3,) * COMPARE.turns,) * 2
    assert untuned.samples_s == ((2.0,),) * 2
    assert found.to_own(untuned) == pytest.approx(2000.0)


def test_outputs_are_compared_with_the_reference(case: Case) -> None:
    found = compare(case, [], rounds=1)
    assert found.reference == "untuned"
    assert found.results[0].difference == pytest.approx(0.1)


def test_our_own_network_must_run(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Pretending, what: str) -> None:
        raise ChildError(f"{self.system} has no answer to {what}")

    monkeypatch.setattr(Pretending, "ask", fail)
    with pytest.raises(ChildError, match="ansor has no answer to ready"):
        compare(case, [])


def test_ratios_are_those_within_a_turn() -> None:
    ours = SystemResult("ansor", ((1.0, 2.0), (2.0,)), 0.0)
    peer = SystemResult("peer", ((3.0, 6.0), (1.0,)), 0.0)
    found = Comparison((ours, peer), "ansor")
    assert found.to_own(peer) == 3.0  # 1.5 between the medians
    assert found.to_own(ours) == 1.0
    assert Comparison((peer,), "peer").to_own(peer) is None


def test_unknown_peers_and_models_are_named() -> None:
    with pytest.raises(ArgumentError, match="peers='tensorflow'"):
        peer_systems(["tensorflow"])
    result = CliRunner().invoke(network.main, ["--models", "nonet"])
    assert "nonet" in str(result.exception)


def test_peers_stand_for_systems() -> None:
    found = peer_systems(["torch", "onnxruntime"])
    assert found == ["torch", "torch_channels_last", "onnxruntime"]


def test_latency_is_the_median_of_turns() -> None:
    result = SystemResult("x", ((3.0, 9.0, 8.0), (1.0, 2.0)), 0.0)
    assert result.latency_s == 3.0
    assert result.rounds_s == [8.0, 1.5]


def test_runs_are_timed_at_least_twice() -> None:
    calls: list[None] = []
    assert timed(lambda: calls.append(None), 0.0, 0.0) >= 0
    assert len(calls) == 3  # one to warm up


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_machine")
def test_an_operator_is_compared_with_the_peak(tmp_path: Path) -> None:
    op = "matmul:rows=32;columns=32;depth=32"
    options = ["--ops", op, "--trials", "4", "--rounds", "1", "--seconds", "0.05"]
    found = run(operators.main, *options, file=tmp_path / "operators.json")
    (row,) = found["results"]
    assert found["environment"]["peak_gflops"] == 100.0
    assert set(row) == {
        "op", "dtype", "system", "latency_us", "to_own", "gflops", "peak_gflops", "of_peak",
        "tuning_s", "trials", "variant", "max_rel_err", "best_so_far",
    }  # fmt: skip
    assert row["trials"] == 4
    seconds, best_us = row["best_so_far"][-1]
    assert 0 < seconds <= row["tuning_s"]
    assert best_us > 0
    assert row["gflops"] == pytest.approx(2 * 32**3 / row["latency_us"] / 1e3)
    assert row["max_rel_err"] < 1e-5


def test_parts_of_the_search_have_rates(tmp_path: Path) -> None:
    options = ["--programs", "64", "--repeats", "1", "--measured", "0"]
    found = run(throughput.main, *options, file=tmp_path / "throughput.json")
    rates = {row["part"]: row["programs_per_s"] for row in found["results"]}
    assert {"sampling", "loop nest", "draft", "features", "evolution"} <= set(rates)
    assert all(rate > 0 for rate in rates.values())


def test_the_work_of_trials_is_their_builds_and_their_runs() -> None:
    """Of 1 ms: a first run and three repeats of 7; of one 3.5 times as slow, the first run."""
    fast = Measurement((1e-3,), build_s=0.1, run_s=0.5)
    slow, failed = Measurement((3.5e-3,), build_s=0.2), Measurement(build_s=0.3)
    found = throughput.work_s([fast, slow, failed])
    assert found == pytest.approx(0.1 + 22e-3 + 0.2 + 3.5e-3 + 0.3)


def test_the_environment_is_plain_json() -> None:
    found = environment.environment(2, more=1)
    assert json.loads(json.dumps(found)) == found
    assert found["threads"] == 2
    assert found["versions"]["apache-tvm"]
    assert found["more"] == 1
