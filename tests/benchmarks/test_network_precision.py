"""Networks in low precision: systems of each peer, errors, and results of the tiny network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from ansor.compare import rounds
from ansor.compare.case import REFERENCE, Case, inputs, network
from ansor.compare.comparison_table import comparison_table
from ansor.compare.results import Comparison, SystemResult, judge
from ansor.compare.rounds import compare, peer_systems, prepare_low_precision
from ansor.compare.systems import OWN, PEERS, SYSTEMS
from ansor.errors import ArgumentError
from benchmarks import network as benchmark


def test_a_peer_competes_in_the_precision_of_the_network() -> None:
    assert peer_systems(["openvino"]) == ["openvino", "openvino_default"]
    assert peer_systems(["openvino"], "bfloat16") == ["openvino_bfloat16", "openvino_default"]
    assert peer_systems(["onnxruntime", "openvino"], "int8") == [
        "onnxruntime_int8",
        "openvino_int8",
    ]
    for precision, peers in PEERS.items():
        for system in peer_systems(peers, precision):
            found = SYSTEMS[system].precision
            assert found in {"float32", precision, {"auto": "bfloat16"}.get(precision)}


def test_peers_without_the_precision_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"peers='torch': peers in int8: give onnxruntime"):
        peer_systems(["torch"], "int8")
    with pytest.raises(ArgumentError, match="precision='int4': give one of float32, bfloat16"):
        peer_systems([], "int4")


def test_errors_are_those_from_float32(tmp_path: Path) -> None:
    case = Case("resnet18", str(tmp_path), 1, precision="int8")
    np.save(case.output(REFERENCE), np.float32([[3.0, 4.0]]))
    np.save(case.output("ansor"), np.float32([[3.0, 4.0]]))
    np.save(case.output("onnxruntime_int8"), np.float32([[4.0, 3.0]]))
    samples = dict.fromkeys(("ansor", "onnxruntime_int8"), ((1.0,),))
    told = {"ansor": {"precision": "int8"}, "onnxruntime_int8": {"precision": "int8"}}
    ours, peer = judge(case, samples, {}, told).results
    assert (ours.difference, ours.squared_error) == (0.0, 0.0)
    assert ours.cosine == pytest.approx(1.0)
    assert peer.difference == pytest.approx(1 / 4)
    assert peer.squared_error == pytest.approx(2 / 25)
    assert peer.cosine == pytest.approx(24 / 25)


def result(system: str, seconds: float, precision: str) -> SystemResult:
    return SystemResult(system, ((seconds,),), 0.25, 0.125, 0.5, precision)


def test_in_float32_the_default_of_a_peer_is_a_note() -> None:
    ours, peer = result("ansor", 2e-3, "float32"), result("openvino", 3e-3, "float32")
    default = result("openvino_default", 1e-3, "bfloat16")
    text = comparison_table(Comparison((ours, peer, default), "untuned"))
    note = "openvino_default: 1.00 ms in bfloat16, which it chooses by default here, 0.50 x"
    assert note in text.splitlines()
    assert sum(line.startswith("openvino_default") for line in text.splitlines()) == 1
    assert "cosine" not in text


def test_in_low_precision_every_system_has_its_errors_and_precision() -> None:
    results = (result("ansor", 2e-3, "auto"), result("openvino_default", 1e-3, "bfloat16"))
    text = comparison_table(Comparison(results, "torch in float32", {}, "auto"))
    first = next(line for line in text.splitlines() if line.startswith("openvino_default"))
    assert first.split()[-4:] == ["2.5e-01", "1.2e-01", "0.500000", "bfloat16"]


def test_only_the_tuned_network_runs_in_low_precision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case("resnet18", str(tmp_path), 1, precision="bfloat16")
    asked: list[str] = []

    def take_turns(_: Any, names: list[str], *__: Any) -> Any:
        asked.extend(names)
        raise KeyboardInterrupt

    monkeypatch.setattr(rounds, "take_turns", take_turns)
    with pytest.raises(KeyboardInterrupt):
        compare(case, [])
    assert asked == [OWN[0]]


@pytest.mark.parametrize(
    ("precision", "model", "asked"),
    [
        ("float32", "resnet18", "float32"),
        ("bfloat16", "resnet18", "bfloat16"),
        ("auto", "resnet18", "auto"),
        ("int8", "model.int8.onnx", "float32"),
    ],
)
def test_the_network_is_tuned_in_the_precision(
    precision: str, model: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, str | None]] = []
    prepared: list[str] = []

    def auto_schedule(source: str, *_: Any, **options: Any) -> Any:
        calls.append((Path(source).name, options.get("precision")))
        raise KeyboardInterrupt

    monkeypatch.setattr(benchmark, "auto_schedule", auto_schedule)
    monkeypatch.setattr(
        benchmark, "prepare_low_precision", lambda case: prepared.append(case.precision)
    )
    CliRunner().invoke(benchmark.main, ["--precision", precision, "--trials", "0"])
    assert calls == [(model, asked)]
    assert prepared == [precision] * (precision != "float32")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    """The tiny network, exported and quantised."""
    for package in ("torch", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    import tiny_network

    from ansor.models import registry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "CONFIGS", tiny_network.CONFIGS)
        patch.setattr(rounds, "ENTRY", (tiny_network.__file__,))
        folder = str(tmp_path_factory.mktemp("tiny"))
        case = Case(tiny_network.NAME, folder, 1, precision="int8")
        prepare_low_precision(case)
        yield case


def cosine(case: Case, name: str) -> float:
    """Of a system's output and the reference."""
    expected = np.load(case.output(REFERENCE)).reshape(-1)
    out = SYSTEMS[name].load(case)(*inputs(network(case)))
    assert out.dtype == np.float32
    found = out.reshape(-1)
    return float(expected @ found / np.sqrt((expected @ expected) * (found @ found)))


@pytest.mark.slow
def test_the_quantised_network_is_close_to_the_original(prepared: Case) -> None:
    onnx = pytest.importorskip("onnx")
    kinds = [node.op_type for node in onnx.load(prepared.quantized).graph.node]
    assert kinds.count("QuantizeLinear") >= 4
    assert 0.999 < cosine(prepared, "onnxruntime_int8") < 1.0
    assert cosine(prepared, "onnxruntime") == pytest.approx(1.0, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torch_bfloat16", "torch_bfloat16_channels_last"])
def test_autocast_computes_in_bfloat16(prepared: Case, name: str) -> None:
    import torch

    try:
        found = cosine(prepared, name)
    finally:
        torch.set_autocast_enabled("cpu", False)
        torch.clear_autocast_cache()
    assert 0.999 < found < 1 - 1e-8


@pytest.mark.slow
def test_openvino_has_a_name_for_each_precision(prepared: Case) -> None:
    pytest.importorskip("openvino")
    assert cosine(prepared, "openvino") == pytest.approx(1.0, abs=1e-6)
    for name in ("openvino_bfloat16", "openvino_default", "openvino_int8"):
        assert 0.999 < cosine(prepared, name) < 1 + 1e-6
    assert SYSTEMS["openvino_default"].told(prepared)["precision"] in {"float32", "bfloat16"}
    assert SYSTEMS["openvino_int8"].told(prepared) == {"precision": "int8"}
