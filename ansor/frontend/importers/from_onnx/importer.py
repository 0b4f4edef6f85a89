"""ONNX models as Relax modules."""

from __future__ import annotations

import io
import warnings
from contextlib import redirect_stdout
from dataclasses import replace
from typing import Any

import onnx
import tvm
from onnx import inliner, version_converter
from tvm.relax.frontend.onnx import from_onnx

from ansor.errors import UnsupportedError
from ansor.frontend.importers.from_onnx.fold import fold_shapes
from ansor.frontend.importers.from_onnx.inputs import examples_of
from ansor.frontend.importers.from_onnx.model import (
    Skeleton,
    completed,
    label,
    read_model,
    skeleton_of,
)
from ansor.frontend.importers.from_onnx.source import OnnxSource
from ansor.frontend.importers.from_onnx.tidy import tidy
from ansor.frontend.importers.from_relax import from_relax
from ansor.frontend.importers.sizes import Sizes
from ansor.frontend.importers.source import ImportedModel

_DOMAINS = ("", "ai.onnx")
# Attributes that the importer passes over.
_MISREAD = {
    "antialias": "smooths what it shrinks; export it without antialias",
    "training_mode": "is in training mode; export the model in eval mode",
}
_OPSET = 13  # the oldest that TVM's importer reads throughout


def import_onnx(source: object, example_inputs: object, sizes: Sizes) -> ImportedModel:
    """An `onnx.ModelProto`, its bytes or its file, its weights as constants.

    `example_inputs`, one array for each input in their order, or `sizes` fix dynamic dimensions.

    Raises:
        ArgumentError: no such file, no valid model, missing weights, a dynamic dimension, wrong
            `example_inputs`.
        UnsupportedError: an unsupported dtype, or an operator, which is named with its node.
    """
    skeleton = skeleton_of(read_model(source), label(source), example_inputs, sizes)
    source = OnnxSource(completed(skeleton), _import_alone, examples_of(example_inputs))
    return from_relax(_imported(skeleton), source)


def _import_alone(model: Any) -> tvm.IRModule:
    return _imported(skeleton_of(model, label(model), None, Sizes()))


def _imported(skeleton: Skeleton) -> tvm.IRModule:
    plain = _modern(inliner.inline_local_functions(skeleton.model))
    for node in plain.graph.node:
        _check_node(node)
        _drop_dropout(node)
    return tidy(_translate(completed(replace(skeleton, model=fold_shapes(plain)))))


def _modern(model: Any) -> Any:
    """The model in an operator set that TVM's importer reads, if ONNX can convert it."""
    version = next((e.version for e in model.opset_import if e.domain in _DOMAINS), _OPSET)
    if version >= _OPSET:
        return model
    try:
        return version_converter.convert_version(model, _OPSET)
    except Exception:  # no adapter for an operator: TVM's importer may know its old form
        return model


def _check_node(node: Any) -> None:
    """Raises UnsupportedError for what TVM's importer would misread instead of refusing it."""
    if node.domain not in _DOMAINS:
        raise UnsupportedError(
            f"operator {node.domain}.{_place(node)} is not ONNX's own; export without it"
        )
    for attribute in node.attribute:
        if attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
            raise UnsupportedError(
                f"operator {_place(node)} is control flow; export the model with fixed branches"
            )
        if attribute.name in _MISREAD and attribute.i:
            raise UnsupportedError(f"operator {_place(node)} {_MISREAD[attribute.name]}")


def _drop_dropout(node: Any) -> None:
    """Dropout passes its input on; the importer's, with its mask, fails in later passes."""
    if node.op_type == "Dropout":
        node.op_type = "Identity"
        del node.input[1:], node.output[1:], node.attribute[:]


def _place(node: Any) -> str:
    """The node's operator and name, or its first result if it has no name."""
    name = f"node {node.name!r}" if node.name else f"the node that makes {node.output[0]!r}"
    return f"{node.op_type} ({name})"


def _translate(model: Any) -> tvm.IRModule:
    try:
        # The importer prints what it cannot convert and warns of every input that it renames.
        with redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return from_onnx(model)
    except Exception as error:  # the importer raises assertions, type, value and TVM's errors
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        places = ", ".join(map(_place, _failed(model, error)))
        what = f"operator {places} of the ONNX model" if places else "the ONNX model"
        raise UnsupportedError(f"cannot import {what}: {reason}") from error


def _failed(model: Any, error: Exception) -> list[Any]:
    """The nodes that the importer could not convert."""
    if isinstance(error, tvm.error.OpNotImplemented):
        unknown = str(error).rpartition(": ")[2].split(", ")
        found = [node for node in model.graph.node if node.op_type in unknown]
        if found:
            return found
    # Which node it was is known only to the importer's loop over the nodes.
    trace = error.__traceback__
    while trace is not None:
        node = trace.tb_frame.f_locals.get("node")
        if isinstance(node, onnx.NodeProto):
            return [node]
        trace = trace.tb_next
    return []
