"""Evaluating what an ONNX graph computes from constants and static shapes.

Exporters write a reshape as Shape, Gather, Unsqueeze and Concat, which is constant once the inputs
have static shapes. TVM's importer stumbles over many of these chains.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

from ansor.frontend.importers.from_onnx.model import SMALL

Array = npt.NDArray[Any]

_RANDOM = ("Random", "Bernoulli", "Multinomial", "Dropout")


def fold_shapes(model: Any) -> Any:
    """The model without the nodes whose results are known, small constants."""
    while True:
        inferred = shape_inference.infer_shapes(model, data_prop=True)
        count = len(model.graph.node)
        model = _fold_once(inferred)
        if len(model.graph.node) == count:
            return model


def _fold_once(model: Any) -> Any:
    """One pass; a folded reshape may show the next pass further static shapes."""
    graph = model.graph
    shapes = _static_shapes(graph)
    given = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    found: dict[str, Array] = {}
    opset = {entry.domain: entry.version for entry in model.opset_import}
    kept = []
    for node in graph.node:
        values = _values(node, ChainMap(found, given), shapes, opset)
        found.update(values)
        if not values:
            kept.append(node)
    added = [numpy_helper.from_array(value, name) for name, value in found.items()]
    constants = [*graph.initializer, *added]
    folded = helper.make_graph(kept, graph.name, graph.input, graph.output, constants)
    return helper.make_model(folded, opset_imports=model.opset_import, ir_version=model.ir_version)


def _values(
    node: Any, known: Mapping[str, Array], shapes: dict[str, tuple[int, ...]], opset: dict[str, int]
) -> dict[str, Array]:
    """The results of a node by name; empty if they are not known or not small."""
    if node.op_type == "Shape" and node.input[0] in shapes:
        whole = np.array(shapes[node.input[0]], np.int64)
        bounds = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        return {node.output[0]: whole[bounds.get("start", 0) : bounds.get("end")]}
    names = [name for name in node.input if name]
    if not _is_pure(node) or any(name not in known for name in names):
        return {}
    results = _evaluate(node, {name: known[name] for name in names}, opset)
    pairs = [(name, value) for name, value in zip(node.output, results, strict=False) if name]
    small = all(isinstance(v, np.ndarray) and v.size <= SMALL for _, v in pairs)
    return dict(pairs) if small else {}


def _evaluate(node: Any, inputs: dict[str, Array], opset: dict[str, int]) -> Sequence[Any]:
    """The results of a node; none of them if ONNX's reference cannot compute it."""
    try:
        results = ReferenceEvaluator(node, opsets=opset).run(None, inputs)
    except Exception:  # the node stays, and TVM's importer says what is wrong with it
        return ()
    return [np.asarray(r) if isinstance(r, np.generic) else r for r in results]


def _is_pure(node: Any) -> bool:
    """Whether the node computes the same at every run, from its inputs alone."""
    has_graph = any(a.type == onnx.AttributeProto.GRAPH for a in node.attribute)
    return not has_graph and not node.domain and not node.op_type.startswith(_RANDOM)


def _static_shapes(graph: Any) -> dict[str, tuple[int, ...]]:
    values = (*graph.input, *graph.value_info, *graph.output)
    shapes = {value.name: _shape(value) for value in values}
    return {name: shape for name, shape in shapes.items() if shape is not None}


def _shape(value: Any) -> tuple[int, ...] | None:
    ty = value.type.tensor_type
    if not ty.HasField("shape") or not all(dim.HasField("dim_value") for dim in ty.shape.dim):
        return None
    return tuple(int(dim.dim_value) for dim in ty.shape.dim)
