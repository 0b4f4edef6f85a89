"""ONNX's RNN, GRU and LSTM against ONNX Runtime, where it has them, and ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from tvm.target import Target

from ansor.errors import UnsupportedError
from ansor.frontend.deploy.runtime import compile_model
from ansor.frontend.importers.importer import import_model
from ansor.frontend.optimization import optimize

onnxruntime = pytest.importorskip("onnxruntime")
STEPS, ROWS, SIZE, UNITS = 4, 3, 5, 6
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
INPUTS = ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"]


def operands(operator: str, directions: int, given: str) -> list[Any]:
    """Arrays in ONNX's order; `given` names the optional ones by their first letters."""
    rng = np.random.default_rng(0)
    rows = GATES[operator] * UNITS

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    values = [
        normal(STEPS, ROWS, SIZE),
        normal(directions, rows, SIZE),
        normal(directions, rows, UNITS),
        normal(directions, 2 * rows) if "B" in given else None,
        np.array([STEPS, 1, 2], np.int32) if "s" in given else None,
        normal(directions, ROWS, UNITS) if "h" in given else None,
        normal(directions, ROWS, UNITS) if "c" in given else None,
        normal(directions, 3 * UNITS) if "P" in given else None,
    ]
    return values if operator == "LSTM" else values[:6]


def model_of(operator: str, values: list[Any], attributes: dict[str, Any]) -> Any:
    names = [n if v is not None else "" for n, v in zip(INPUTS, values, strict=False)]
    results = ["Y", "Y_h", "Y_c"] if operator == "LSTM" else ["Y", "Y_h"]
    node = helper.make_node(operator, names, results, hidden_size=UNITS, **attributes)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for n, v in zip(names, values, strict=True)
        if v is not None
    ]
    outputs = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in results]
    graph = helper.make_graph([node], "graph", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def expected(operator: str, values: list[Any], attributes: dict[str, Any]) -> list[Any]:
    model = model_of(operator, values, attributes)
    feed = {n: v for n, v in zip(INPUTS, values, strict=False) if v is not None}
    if attributes.get("layout"):  # which ONNX Runtime does not have
        return ReferenceEvaluator(model).run(None, feed)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feed)


def found(operator: str, values: list[Any], attributes: dict[str, Any], target: Target) -> Any:
    mod = import_model(model_of(operator, values, attributes)).mod
    return compile_model(optimize(mod, target), target)(*[v for v in values if v is not None])


def check(operator: str, given: str, attributes: dict[str, Any], target: Target) -> None:
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    values = operands(operator, directions, given)
    if attributes.get("layout"):
        for place in (0, 5, 6):
            if place < len(values) and values[place] is not None:
                values[place] = np.ascontiguousarray(np.swapaxes(values[place], 0, 1))
    want = expected(operator, values, attributes)
    for mine, its in zip(found(operator, values, attributes, target), want, strict=True):
        assert mine.shape == its.shape
        np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5)


CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("RNN", "", {}),
    ("RNN", "Bh", {"direction": "bidirectional", "activations": ["Relu", "Tanh"]}),
    ("RNN", "Bs", {"direction": "reverse", "clip": 0.5}),
    ("GRU", "", {}),
    ("GRU", "Bh", {"linear_before_reset": 1}),
    ("GRU", "Bh", {"linear_before_reset": 0, "direction": "reverse"}),
    ("GRU", "Bsh", {"direction": "bidirectional", "linear_before_reset": 1}),
    ("GRU", "B", {"clip": 0.3}),
    ("GRU", "B", {"activations": ["HardSigmoid", "Softsign"], "activation_alpha": [0.3]}),
    ("LSTM", "", {}),
    ("LSTM", "Bhc", {"direction": "bidirectional"}),
    ("LSTM", "BhcP", {}),
    ("LSTM", "Bshc", {"direction": "bidirectional"}),
    ("LSTM", "Bs", {"direction": "reverse"}),
    ("LSTM", "BP", {"clip": 0.4}),
    ("LSTM", "B", {"input_forget": 1}),
    ("LSTM", "B", {"activations": ["Sigmoid", "LeakyRelu", "Elu"], "activation_alpha": [0.2, 0.7]}),
]


@pytest.mark.parametrize(("operator", "given", "attributes"), CASES)
def test_against_onnx_runtime(
    operator: str, given: str, attributes: dict[str, Any], target: Target
) -> None:
    check(operator, given, attributes, target)


@pytest.mark.parametrize("operator", GATES)
def test_rows_first(operator: str, target: Target) -> None:
    check(operator, "B", {"layout": 1}, target)


@pytest.mark.parametrize(
    ("name", "alpha", "beta"),
    [
        ("Affine", 0.5, 0.1),
        ("ThresholdedRelu", 0.2, None),
        ("ScaledTanh", 0.8, 0.6),
        ("HardSigmoid", 0.3, 0.4),
        ("Softplus", None, None),
        ("Softsign", None, None),
        ("Sigmoid", None, None),
    ],
)
def test_activations(name: str, alpha: float | None, beta: float | None, target: Target) -> None:
    attributes: dict[str, Any] = {"activations": [name]}
    if alpha is not None:
        attributes["activation_alpha"] = [alpha]
    if beta is not None:
        attributes["activation_beta"] = [beta]
    check("RNN", "B", attributes, target)


def test_an_unknown_activation_is_refused() -> None:
    model = model_of("RNN", operands("RNN", 1, ""), {"activations": ["Cosine"]})
    with pytest.raises(UnsupportedError, match=r"RNN .*Cosine"):
        import_model(model)
