"""Which of a comparison's systems can run which built-in network."""

from __future__ import annotations

import importlib

import pytest

from ansor.compare import systems
from ansor.compare.case import Case
from ansor.compare.systems import SYSTEMS
from ansor.models import model_names


@pytest.fixture(autouse=True)
def everything_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "find_spec", lambda name: object())


CHANNELS_LAST = ("torch_channels_last", "torch_bfloat16_channels_last")


@pytest.mark.parametrize("system", CHANNELS_LAST)
@pytest.mark.parametrize("name", model_names())
def test_channels_last_is_for_images_and_videos(name: str, system: str) -> None:
    reason = SYSTEMS[system].absence(Case(name, "", 1))
    assert reason == ("not for inputs of 3 dimensions" if name == "bert_base" else "")


@pytest.mark.parametrize("system", sorted(set(SYSTEMS) - set(CHANNELS_LAST)))
def test_other_systems_take_any_input(system: str) -> None:
    assert SYSTEMS[system].absence(Case("bert_base", "", 1)) == ""


def test_onnx_runtime_needs_its_own_build_for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    case = Case("resnet18", "", 1, device="cuda")
    found = {"CPUExecutionProvider": "install onnxruntime-gpu instead", "CUDAExecutionProvider": ""}
    for provider, reason in found.items():
        monkeypatch.setattr(onnxruntime, "get_available_providers", lambda p=provider: [p])
        assert SYSTEMS["onnxruntime"].absence(case).endswith(reason)
        assert bool(SYSTEMS["onnxruntime"].absence(case)) == bool(reason)
    assert SYSTEMS["openvino"].absence(case) == "not on cuda"


def test_onnx_runtime_works_on_tensors_where_they_are() -> None:
    onnxruntime, torch = pytest.importorskip("onnxruntime"), pytest.importorskip("torch")
    helper, kind = pytest.importorskip("onnx").helper, 1  # float32
    values = [helper.make_tensor_value_info(name, kind, [2, 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    run = importlib.import_module("ansor.compare.onnx_systems").in_place(session, "cpu")
    for sign in (1.0, -2.0):
        x = sign * torch.arange(6.0).reshape(2, 3)
        assert torch.equal(run(x), -x)
