"""`quantize`: what comes out is near the float model, and `auto_schedule` takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tvm.target import Target

import ansor
from ansor.cli.main import main
from ansor.errors import ArgumentError
from ansor.frontend import compile_model, import_model, optimize
from ansor.quantization.quantize import METHODS, quantized
from ansor.quantization.request import Request
from ansor.targets.cpu.low_precision import prefers_narrow_weights

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("sympy")

import onnx
from onnx import numpy_helper

from ansor.quantization import search
from tests.frontend.quantized_networks import (
    IMAGE,
    Node,
    network,
    residual_network,
    run_in_onnxruntime,
)

RNG = np.random.default_rng(0)
SAMPLES = RNG.standard_normal((4, *IMAGE)).astype(np.float32)


def operators(model: Any) -> set[str]:
    return {node.op_type for node in model.graph.node}


def relative(found: Any, expected: Any) -> float:
    return float(np.square(found - expected).sum() / np.square(expected).sum())


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_near_the_float_model(method: str) -> None:
    model = residual_network()
    made = ansor.quantize(model, {"x": SAMPLES}, method=method)
    assert {"QuantizeLinear", "DequantizeLinear", "Conv"} <= operators(made)
    x = SAMPLES[0]
    found, expected = (run_in_onnxruntime(one, x)[0] for one in (made, model))
    assert relative(found, expected) < 1e-2
    target = Target({"kind": "llvm"})
    ours = compile_model(optimize(import_model(made).mod, target), target)(x)
    assert relative(ours, found) < 1e-4


def test_weights_have_a_scale_for_each_channel_or_tensor() -> None:
    model = residual_network()
    for per_channel, size in ((True, 8), (False, 1)):
        made = ansor.quantize(model, {"x": SAMPLES}, method="minmax", per_channel=per_channel)
        scales = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
        assert scales["w1_scale"].size == size


def largest_weight(model: Any) -> int:
    arrays = map(numpy_helper.to_array, model.graph.initializer)
    return max(
        int(np.abs(a.astype(int)).max()) for a in arrays if a.dtype == np.int8 and a.size > 1
    )


def test_weights_have_seven_bits_where_that_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    model = residual_network()
    for processor, expected in (("haswell", 64), ("cascadelake", 127)):
        target = Target({"kind": "llvm", "mcpu": processor})
        monkeypatch.setattr(search, "resolve_target", lambda _, found=target: found)
        made = ansor.quantize(model, {"x": SAMPLES}, method="minmax")
        assert largest_weight(made) == expected
        given = ansor.quantize(model, {"x": SAMPLES}, method="minmax", reduce_range=expected == 127)
        assert largest_weight(given) == 64 + 127 - expected
    with pytest.raises(ArgumentError, match="reduce_range=7"):
        ansor.quantize(model, {"x": SAMPLES}, reduce_range=7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("processor", "expected"),
    [("nehalem", False), ("haswell", True), ("skylake-avx512", True), ("cascadelake", False)],
)
def test_processors_that_prefer_weights_of_seven_bits(processor: str, expected: bool) -> None:
    assert prefers_narrow_weights(Target({"kind": "llvm", "mcpu": processor})) == expected


def test_forms_of_samples_agree() -> None:
    model = residual_network()
    forms: list[Any] = [
        {"x": SAMPLES},
        {"x": SAMPLES.reshape(-1, *IMAGE[1:])},
        list(SAMPLES),
        [(sample,) for sample in SAMPLES],
        [{"x": sample.astype(np.float64)} for sample in SAMPLES],
        iter(SAMPLES),
    ]
    models = [ansor.quantize(model, form, method="minmax") for form in forms]
    assert len({made.SerializeToString(deterministic=True) for made in models}) == 1


def outlier_network() -> Any:
    """Two branches; the range of one is spoilt by a constant of 1000 beside values of 1."""
    weights = {
        "wa": (RNG.standard_normal((8, 3, 3, 3)) / 5).astype(np.float32),
        "wb": (RNG.standard_normal((8, 3, 3, 3)) / 5).astype(np.float32),
        "bb": np.array([1000, *[0] * 7], np.float32),
        "wc": np.concatenate([np.zeros((5, 1, 1, 1)), RNG.standard_normal((5, 7, 1, 1))], 1).astype(
            np.float32
        ),
        "wd": (RNG.standard_normal((5, 8, 1, 1)) / 3).astype(np.float32),
    }
    nodes = [
        Node("Conv", ["x", "wa"], ["a"], pads=[1] * 4, name="good_first"),
        Node("Conv", ["a", "wd"], ["d"], name="good_second"),
        Node("Conv", ["x", "wb", "bb"], ["b"], pads=[1] * 4, name="bad_first"),
        Node("Conv", ["b", "wc"], ["c"], name="bad_second"),
        Node("Add", ["c", "d"], ["y"], name="join"),
    ]
    return network(nodes, weights, IMAGE)


def test_the_most_sensitive_operators_stay_in_float() -> None:
    model = outlier_network()
    free = quantized(Request(model, {"x": SAMPLES}, method="minmax"))
    assert free.error > 0.05
    assert free.in_float == ()
    bound = quantized(Request(model, {"x": SAMPLES}, method="minmax", max_error=0.01))
    assert bound.error <= 0.01
    assert {"bad_first", "bad_second"} <= set(bound.in_float)
    assert "good_first" not in bound.in_float
    found, expected = (run_in_onnxruntime(one, SAMPLES[0])[0] for one in (bound.model, model))
    assert relative(found, expected) < 0.02


def test_own_metric_and_a_bound_that_nothing_meets() -> None:
    seen = []

    def metric(expected: Any, found: Any) -> float:
        seen.append((len(expected), found[0][0].shape))
        return 2.0

    with pytest.raises(ArgumentError, match=r"max_error=1.*the error is 2; allow as much"):
        ansor.quantize(
            residual_network(), {"x": SAMPLES}, method="minmax", max_error=1, metric=metric
        )
    assert set(seen) == {(len(SAMPLES), (1, 5))}


def test_torch_modules_are_exported() -> None:
    torch = pytest.importorskip("torch")
    layers = [torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()]
    module = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(4 * 14 * 14, 5))
    made = ansor.quantize(module, list(SAMPLES), method="minmax")
    assert module.training
    with torch.no_grad():
        expected = module.eval()(torch.from_numpy(SAMPLES[0])).numpy()
    assert made.graph.input[0].name == "input"
    made.graph.input[0].name = "x"
    for node in made.graph.node:
        names = ["x" if name == "input" else name for name in node.input]
        del node.input[:]
        node.input.extend(names)
    (found,) = run_in_onnxruntime(made, SAMPLES[0])
    assert relative(found, expected) < 1e-2
    assert {"Conv", "Gemm"} <= operators(made)


def test_command(tmp_path: Path) -> None:
    onnx.save(residual_network(), tmp_path / "net.onnx")
    np.savez(tmp_path / "samples.npz", x=SAMPLES)
    out = tmp_path / "net8.onnx"
    result = CliRunner().invoke(
        main,
        [
            *("quantize", str(tmp_path / "net.onnx"), "--method", "minmax", "--reduce-range"),
            *("--calibration", str(tmp_path / "samples.npz"), "--out", str(out)),
        ],
    )
    assert result.exit_code == 0, result.output
    assert f"saved: {out}" in result.output
    made = onnx.load(out)
    assert "QuantizeLinear" in operators(made)
    assert largest_weight(made) == 64
