"""Small float networks in ONNX, and what `onnxruntime.quantization` makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)

Node = helper.make_node
IMAGE = (1, 3, 16, 16)
TOKENS = (1, 12, 16)


def _weights(shapes: Mapping[str, Sequence[int]], seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    found = {}
    for name, shape in shapes.items():
        fan_in = int(np.prod(shape[1:])) if len(shape) != 2 else shape[0]
        found[name] = (rng.standard_normal(shape) / np.sqrt(fan_in or 1)).astype(np.float32)
    return found


def network(nodes: list[Any], weights: Mapping[str, Any], shape: Sequence[int]) -> Any:
    """A model of one input "x" and one output "y"."""
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(made)


def residual_network() -> Any:
    """Convolutions (plain, strided, depthwise), a residual, pooling, a concatenation, a Gemm."""
    nodes = [
        *(Node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1] * 4), Node("Relu", ["c0"], ["r0"])),
        Node("MaxPool", ["r0"], ["p0"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
        *(Node("Conv", ["p0", "w1", "b1"], ["c1"], pads=[1] * 4), Node("Relu", ["c1"], ["r1"])),
        Node("Conv", ["r1", "w2", "b1"], ["c2"], pads=[1] * 4),
        *(Node("Add", ["c2", "p0"], ["a"]), Node("Relu", ["a"], ["r2"])),
        Node("Conv", ["r2", "wd", "b1"], ["d"], pads=[1] * 4, group=8),
        Node("Clip", ["d", "low", "high"], ["dc"]),
        Node("Conv", ["dc", "w3", "b3"], ["c3"], strides=[2, 2]),
        Node("Conv", ["c3", "w4", "b3"], ["c4"], pads=[1] * 4),
        Node("Concat", ["c3", "c4"], ["cc"], axis=1),
        *(Node("GlobalAveragePool", ["cc"], ["g"]), Node("Flatten", ["g"], ["f"])),
        Node("Gemm", ["f", "wg", "bg"], ["y"], transB=1),
    ]
    shapes = {
        "w0": (8, 3, 3, 3),
        "b0": (8,),
        "w1": (8, 8, 3, 3),
        "w2": (8, 8, 3, 3),
        "b1": (8,),
        "wd": (8, 1, 3, 3),
        "w3": (12, 8, 1, 1),
        "b3": (12,),
        "w4": (12, 12, 3, 3),
        "wg": (5, 24),
        "bg": (5,),
    }
    bounds = {"low": np.float32(0), "high": np.float32(6)}
    return network(nodes, {**_weights(shapes), **bounds}, IMAGE)


def transformer() -> Any:
    """One head of attention with its residual and a layer normalisation."""
    nodes = [
        *(Node("MatMul", ["x", f"w{n}"], [f"{n}0"]) for n in "qkv"),
        *(Node("Add", [f"{n}0", f"b{n}"], [n]) for n in "qkv"),
        Node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        *(Node("MatMul", ["q", "kt"], ["s0"]), Node("Div", ["s0", "root"], ["s"])),
        *(Node("Softmax", ["s"], ["p"]), Node("MatMul", ["p", "v"], ["o0"])),
        *(Node("MatMul", ["o0", "wo"], ["o1"]), Node("Add", ["o1", "x"], ["o"])),
        Node("LayerNormalization", ["o", "gamma", "beta"], ["n"]),
        *(Node("MatMul", ["n", "w1"], ["h0"]), Node("Add", ["h0", "b1"], ["h"])),
        *(Node("Sigmoid", ["h"], ["hs"]), Node("Mul", ["h", "hs"], ["y"])),
    ]
    shapes = {**{f"w{n}": (16, 16) for n in "qkvo"}, **{f"b{n}": (16,) for n in "qkv"}}
    shapes |= {"w1": (16, 24), "b1": (24,), "beta": (16,)}
    fixed = {"gamma": np.ones(16, np.float32), "root": np.float32(4)}
    return network(nodes, {**_weights(shapes), **fixed}, TOKENS)


class _Batches(CalibrationDataReader):
    """Four batches of normal numbers."""

    def __init__(self, model: Any) -> None:
        rng = np.random.default_rng(1)
        shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
        self._batches = iter([{"x": rng.standard_normal(shape).astype(np.float32)} for _ in "1234"])

    def get_next(self) -> Any:
        return next(self._batches, None)


def quantized(model: Any, folder: Path, form: str = "QDQ", **settings: Any) -> Any:
    """The model with uint8 activations and int8 weights per channel, unless settings differ."""
    given: dict[str, Any] = {"per_channel": True, "activation_type": QuantType.QUInt8}
    given |= {"weight_type": QuantType.QInt8, "quant_format": getattr(QuantFormat, form)}
    before, after = folder / "float.onnx", folder / "quantized.onnx"
    onnx.save(model, before)
    quantize_static(before, after, _Batches(model), **{**given, **settings})
    return onnx.load(after)


def with_every_integer(model: Any) -> Any:
    """The model with every result of a QuantizeLinear as an output."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    known = {value.name for value in made.graph.output}
    for node in made.graph.node:
        if node.op_type == "QuantizeLinear" and node.output[0] not in known:
            made.graph.output.append(onnx.ValueInfoProto(name=node.output[0]))
    return made


def run_in_onnxruntime(model: Any, x: Any) -> list[Any]:
    """The outputs of the model as it is written, without fused operators."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return list(session.run(None, {"x": x}))
