"""Quantised networks in all forms of `onnxruntime.quantization`, and as NNCF writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm.target import Target

from ansor.frontend import compile_model, import_model, optimize
from ansor.frontend.passes.integer.form import integer_form
from tests.frontend.test_integer_products import products

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic

from tests.frontend.quantized_networks import (
    quantized,
    residual_network,
    run_in_onnxruntime,
    transformer,
)
from tests.frontend.test_integer_networks import example, off_by_a_step

Node = helper.make_node
DOMAIN = "com.microsoft"
NETWORKS = {"residual": residual_network, "transformer": transformer}


def compute(model: Any, *inputs: Any) -> Any:
    target = Target({"kind": "llvm"})
    return compile_model(optimize(import_model(model).mod, target), target)(*inputs)


def integer_products(model: Any) -> int:
    mod: tvm.IRModule = integer_form(import_model(model).mod)
    return sum(str(call.ty.dtype) == "int32" for call in products(mod))


@pytest.mark.parametrize("name", NETWORKS)
def test_operators_of_quantised_tensors(name: str, tmp_path: Path) -> None:
    model = quantized(NETWORKS[name](), tmp_path, "QOperator")
    x = example(model)
    (expected,) = run_in_onnxruntime(model, x)
    assert integer_products(model) >= 6
    np.testing.assert_allclose(compute(model, x), expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize("name", NETWORKS)
def test_dynamic_quantisation(name: str, tmp_path: Path) -> None:
    before, after = tmp_path / "float.onnx", tmp_path / "dynamic.onnx"
    onnx.save(NETWORKS[name](), before)
    quantize_dynamic(before, after)
    model = onnx.load(after)
    x = example(model)
    (expected,) = run_in_onnxruntime(model, x)
    assert integer_products(model) >= 5
    np.testing.assert_allclose(compute(model, x), expected, rtol=1e-4, atol=1e-4)


def test_weights_that_the_graph_quantises() -> None:
    """NNCF leaves float weights, and a QuantizeLinear and a DequantizeLinear behind them."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((40, 8, 3, 3)).astype(np.float32),
        "sw": rng.uniform(0.01, 0.03, 40).astype(np.float32),
        "zw": np.zeros(40, np.int8),
        "sx": np.float32(0.02),
        "zx": np.uint8(128),
    }
    nodes = [
        Node("QuantizeLinear", ["x", "sx", "zx"], ["xq"]),
        Node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"]),
        Node("QuantizeLinear", ["w", "sw", "zw"], ["wq"], axis=0),
        Node("DequantizeLinear", ["wq", "sw", "zw"], ["wd"], axis=0),
        Node("Conv", ["xd", "wd"], ["y"], pads=[1] * 4),
    ]
    model = one_input_model(nodes, weights, "x", np.zeros((1, 8, 6, 6), np.float32))
    assert integer_products(model) == 1
    x = example(model)
    (expected,) = run_in_onnxruntime(model, x)
    np.testing.assert_allclose(compute(model, x), expected, rtol=1e-4, atol=1e-4)


def one_input_model(nodes: list[Any], weights: dict[str, Any], name: str, value: Any) -> Any:
    """A model whose input is like the value; its output is "y"."""
    dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
    graph = helper.make_graph(
        nodes,
        "one",
        [helper.make_tensor_value_info(name, dtype, value.shape)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(array), key) for key, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


IMAGE = (2, 6, 8, 8)
PARAMETERS = {
    "sx": np.float32(0.05),
    "zx": np.uint8(110),
    "sy": np.float32(0.04),
    "zy": np.uint8(90),
    "so": np.float32(0.06),
    "zo": np.uint8(120),
}
X, OUT = ["x", "sx", "zx"], ["so", "zo"]


def codes(shape: tuple[int, ...], seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 255, shape, np.uint8)


def contributed(operator: str, inputs: list[str], **attributes: Any) -> Any:
    return Node(operator, inputs, ["y"], domain=DOMAIN, **attributes)


CASES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "add": (contributed("QLinearAdd", [*X, "o", "sy", "zy", *OUT]), IMAGE),
    "mul": (contributed("QLinearMul", [*X, "o", "sy", "zy", *OUT]), IMAGE),
    "sigmoid": (contributed("QLinearSigmoid", [*X, *OUT]), IMAGE),
    "leaky": (contributed("QLinearLeakyRelu", [*X, *OUT], alpha=0.2), IMAGE),
    "softmax": (contributed("QLinearSoftmax", [*X, "s1", "z1"], axis=-1, opset=13), (3, 7)),
    "old softmax": (contributed("QLinearSoftmax", [*X, "s1", "z1"], axis=1, opset=11), (3, 7, 2)),
    "average": (
        contributed("QLinearAveragePool", [*X, *OUT], kernel_shape=[3, 3], pads=[1] * 4),
        IMAGE,
    ),
    "global": (contributed("QLinearGlobalAveragePool", [*X, *OUT]), IMAGE),
    "concat": (contributed("QLinearConcat", [*OUT, *X, "o", "sy", "zy"], axis=1), IMAGE),
    "where": (contributed("QLinearWhere", ["flag", *X, "o", "sy", "zy", *OUT]), IMAGE),
    "gemm": (
        contributed("QGemm", [*X, "w", "sw", "zw", "b", *OUT], transB=1, alpha=0.5),
        (5, 12),
    ),
    "float gemm": (contributed("QGemm", [*X, "w", "sw", "zw", "b"], transB=1), (5, 12)),
    "to float": (contributed("MatMulIntegerToFloat", ["x", "wt", "sx", "sw", "zx", "zw"]), (5, 12)),
}
RNG = np.random.default_rng(1)
WEIGHTS = {
    "o": codes(IMAGE, 2),
    "flag": RNG.integers(0, 2, IMAGE).astype(bool),
    "w": RNG.integers(-127, 127, (4, 12), np.int8),
    "wt": RNG.integers(-127, 127, (12, 4), np.int8),
    "sw": RNG.uniform(0.001, 0.01, 4).astype(np.float32),
    "zw": np.zeros(4, np.int8),
    "b": RNG.integers(-500, 500, 4).astype(np.int32),
    "s1": np.float32(1 / 256),
    "z1": np.uint8(0),
}


@pytest.mark.parametrize("name", CASES)
def test_operators_of_onnx_runtime(name: str) -> None:
    node, shape = CASES[name]
    weights = {k: v for k, v in {**PARAMETERS, **WEIGHTS}.items() if k in node.input}
    x = codes(shape)
    model = one_input_model([node], weights, "x", x)
    (expected,) = run_in_onnxruntime(model, x)
    found = compute(model, x)
    assert found.dtype == expected.dtype
    if expected.dtype == np.float32:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    else:
        assert off_by_a_step(found, expected) == 0
