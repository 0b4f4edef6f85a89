"""Quantised networks: as ONNX Runtime computes them, in functions of integers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm.target import Target

from ansor.frontend import compile_model, import_model, optimize
from ansor.frontend.distinct_functions import tir_calls

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import numpy_helper

from tests.frontend.quantized_layers import differing, layers
from tests.frontend.quantized_networks import (
    IMAGE,
    Node,
    network,
    quantized,
    residual_network,
    run_in_onnxruntime,
    transformer,
    with_every_integer,
)

Network = Callable[[], Any]
NETWORKS = {"residual": residual_network, "transformer": transformer}
SETTINGS: dict[str, dict[str, Any]] = {
    "per channel": {},
    "per tensor": {"per_channel": False},
    "symmetric": {"extra_options": {"ActivationSymmetric": True}},
    "asymmetric weights": {"extra_options": {"WeightSymmetric": False}, "per_channel": False},
    "float biases": {"extra_options": {"QuantizeBias": False}},
}


def optimised(model: Any, target: Target) -> tvm.IRModule:
    return optimize(import_model(model).mod, target)


def example(model: Any, seed: int = 5) -> Any:
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def off_by_a_step(found: Any, expected: Any) -> float:
    """Share of elements that differ by more than one step."""
    return float(np.mean(np.abs(found.astype(np.int32) - expected) > 1))


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("name", NETWORKS)
def test_every_quantised_tensor_is_within_one_step(
    name: str, settings: str, target: Target, tmp_path: Path
) -> None:
    model = with_every_integer(quantized(NETWORKS[name](), tmp_path, **SETTINGS[settings]))
    x = example(model)
    found = compile_model(optimised(model, target), target)(x)
    expected = run_in_onnxruntime(model, x)
    integers = [(f, e) for f, e in zip(found, expected, strict=True) if e.dtype.kind in "iu"]
    assert len(integers) > 10
    assert all(f.dtype == e.dtype for f, e in integers)
    assert max(off_by_a_step(f, e) for f, e in integers) <= 1e-3


@pytest.mark.parametrize("name", NETWORKS)
def test_every_layer_alone_is_within_one_step(name: str, tmp_path: Path) -> None:
    model = quantized(NETWORKS[name](), tmp_path)
    found = list(layers(model, [example(model)]))
    assert len(found) > 10
    assert [text for layer in found if (text := differing(layer))] == []


@pytest.mark.parametrize("name", NETWORKS)
def test_fused_network_is_within_one_step(name: str, target: Target, tmp_path: Path) -> None:
    model = quantized(NETWORKS[name](), tmp_path)
    step = scale_of_output(model)
    x = example(model)
    found = compile_model(optimised(model, target), target)(x)
    (expected,) = run_in_onnxruntime(model, x)
    assert np.mean(np.abs(found - expected) > 1.01 * step) <= 1e-3


def scale_of_output(model: Any) -> float:
    node = next(node for node in model.graph.node if node.output[0] == "y")
    scale = next(t for t in model.graph.initializer if t.name == node.input[1])
    return float(numpy_helper.to_array(scale))


def test_every_layer_of_a_residual_network_is_one_function(target: Target, tmp_path: Path) -> None:
    mod = optimised(quantized(residual_network(), tmp_path), target)
    calls = [(str(call.args[0].name_hint), call) for call in tir_calls(mod)]
    convolutions = [call for name, call in calls if "conv2d" in name]
    assert len(convolutions) == 6
    assert all(str(call.ty.dtype) == "uint8" for call in convolutions)
    kinds = Counter(next(k for k in KINDS if k in name) for name, _ in calls)
    # The image is quantised before its channels come last, and a tensor whose zero point is not 0
    # is padded.
    others = {
        "max_pool2d": 1,
        "fused_divide": 1,
        "pad": 2,
        "concatenate": 1,
        "mean": 1,
        "matmul": 1,
    }
    assert kinds == {"conv2d": 6, **others}


def test_two_products_that_are_added_store_eight_bits(target: Target, tmp_path: Path) -> None:
    nodes = [
        *(Node("Conv", ["x", "w"], ["a"]), Node("Conv", ["x", "v"], ["b"])),
        *(Node("Add", ["a", "b"], ["c"]), Node("Relu", ["c"], ["d"])),
        Node("Conv", ["d", "u"], ["y"]),
    ]
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal((4, 3, 3, 3)).astype(np.float32) for name in "wv"}
    weights["u"] = rng.standard_normal((5, 4, 1, 1)).astype(np.float32)
    model = quantized(network(nodes, weights, IMAGE), tmp_path)
    mod = optimised(model, target)
    convolutions = [call for call in tir_calls(mod) if "conv2d" in str(call.args[0].name_hint)]
    assert [str(call.ty.dtype) for call in convolutions] == ["uint8", "uint8", "float32"]
    x = example(model)
    found = compile_model(mod, target)(x)
    np.testing.assert_allclose(found, run_in_onnxruntime(model, x)[0], atol=scale_of_output(model))


KINDS = ("conv2d", "max_pool2d", "fused_divide", "pad", "concatenate", "mean", "matmul")
