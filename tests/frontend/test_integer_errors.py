"""Quantised networks that are not whole: the error names the node, the tensor and the remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ansor.errors import UnsupportedError
from ansor.frontend import import_model

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
from onnx import numpy_helper

from tests.frontend.quantized_networks import quantized, residual_network


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return quantized(residual_network(), tmp_path_factory.mktemp("quantized"))


@pytest.fixture
def model(whole: Any) -> Any:
    made = onnx.ModelProto()
    made.CopyFrom(whole)
    return made


def without(model: Any, operator: str, result: str) -> None:
    """Takes one node out of the model; its readers read its operand."""
    (node,) = (n for n in model.graph.node if n.op_type == operator and result == n.output[0])
    for reader in model.graph.node:
        names = [node.input[0] if name == result else name for name in reader.input]
        del reader.input[:]
        reader.input.extend(names)
    model.graph.node.remove(node)


@pytest.mark.parametrize("value", [0, -1, np.nan, np.inf])
def test_scale_that_is_not_positive_and_finite(model: Any, value: float) -> None:
    (scale,) = (t for t in model.graph.initializer if t.name == "x_scale")
    scale.CopyFrom(numpy_helper.from_array(np.asarray(value, np.float32), "x_scale"))
    with pytest.raises(UnsupportedError, match=r"QuantizeLinear.*'x_scale' is .*finite"):
        import_model(model)


def test_scale_of_one_channel(model: Any) -> None:
    (scale,) = (t for t in model.graph.initializer if t.name == "w1_scale")
    values = numpy_helper.to_array(scale).copy()
    values[3] = 0
    scale.CopyFrom(numpy_helper.from_array(values, "w1_scale"))
    with pytest.raises(UnsupportedError, match="'w1_scale' is 0"):
        import_model(model)


def test_dequantize_of_floats(model: Any) -> None:
    without(model, "QuantizeLinear", "x_QuantizeLinear_Output")
    with pytest.raises(UnsupportedError, match=r"DequantizeLinear.*float32; a QuantizeLinear is"):
        import_model(model)


@pytest.mark.parametrize(
    ("tensor", "reader"),
    [
        ("x_DequantizeLinear_Output", "Conv"),
        ("w1_DequantizeLinear_Output", "Conv"),
        ("c2_DequantizeLinear_Output", "Add"),
        ("f_DequantizeLinear_Output", "Gemm"),
        ("r0_DequantizeLinear_Output", "QuantizeLinear"),
    ],
)
def test_integers_without_dequantize(model: Any, tensor: str, reader: str) -> None:
    without(model, "DequantizeLinear", tensor)
    remedy = rf"{reader} .*int8, and .*a DequantizeLinear is missing"
    with pytest.raises(UnsupportedError, match=remedy):
        import_model(model)


def test_an_output_may_be_integers(model: Any) -> None:
    (output,) = model.graph.output
    output.CopyFrom(onnx.ValueInfoProto(name="y_QuantizeLinear_Output"))
    (last,) = (node for node in model.graph.node if node.output[0] == "y")
    model.graph.node.remove(last)
    assert str(import_model(model).mod["main"].ty.ret.dtype) == "uint8"
