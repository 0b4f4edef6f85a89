"""Layers of quantised networks, each alone, on the integers that ONNX Runtime gives to it.

A layer is what lies between quantised tensors. Over a whole network one step grows to many, in
ONNX Runtime's own two modes too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from ansor.frontend.deploy.runtime import compile_model
from ansor.frontend.importers.importer import import_model
from ansor.frontend.optimization import optimize
from ansor.targets.target import resolve_target

MAX_SHARE = 1e-3  # of a layer's elements that may differ by more than a step


@dataclass(frozen=True, eq=False)
class Layer:
    """A part of a network that ends in one quantised tensor.

    Attributes:
        model: an `onnx.ModelProto`.
        inputs: arrays of its inputs.
        expected: the quantised tensor.
    """

    name: str
    model: Any
    inputs: tuple[Any, ...]
    expected: Any


def differing(layer: Layer) -> str:
    """How a layer differs from ONNX Runtime's; "" if it does not by more than a step."""
    target = resolve_target("native")
    compiled = compile_model(optimize(import_model(layer.model).mod, target), target)
    found = compiled(*layer.inputs)
    share = float(np.mean(np.abs(found.astype(np.int32) - layer.expected) > 1))
    return "" if share <= MAX_SHARE else f"{layer.name}: {share:.2%} of the elements"


def layers(model: Any, inputs: Any) -> Iterator[Layer]:
    """The layers of a network in the format QDQ, with their values for some inputs."""
    quantised = [n.output[0] for n in model.graph.node if n.op_type == "QuantizeLinear"]
    values = _values(model, inputs, quantised)
    makers = {name: node for node in model.graph.node for name in node.output}
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    for name in quantised:
        nodes = _between(makers, makers[name], set(values))
        used = {operand for node in nodes for operand in node.input}
        given = [one for one in values if one in used]
        graph = helper.make_graph(
            nodes,
            "layer",
            [_declared(one, values[one]) for one in given],
            [_declared(name, values[name])],
            [weights[one] for one in sorted(used & set(weights))],
        )
        made = helper.make_model(
            graph, opset_imports=model.opset_import, ir_version=model.ir_version
        )
        yield Layer(name, made, tuple(values[one] for one in given), values[name])


def _values(model: Any, inputs: Any, names: list[str]) -> dict[str, Any]:
    """The inputs and the tensors of these names, as ONNX Runtime computes them."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.output[:]
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), options)
    feed = {one.name: array for one, array in zip(session.get_inputs(), inputs, strict=True)}
    return {**feed, **dict(zip(names, session.run(names, feed), strict=True))}


def _between(makers: dict[str, Any], last: Any, known: set[str]) -> list[Any]:
    """The nodes from known tensors to a node, in an order in which they can run."""
    found: dict[str, Any] = {}  # by the first result

    def visit(node: Any) -> None:
        if node.output[0] in found:
            return
        for name in node.input:
            if name in makers and name not in known:
                visit(makers[name])
        found[node.output[0]] = node

    visit(last)
    return list(found.values())


def _declared(name: str, value: Any) -> Any:
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
    )
