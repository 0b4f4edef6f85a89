"""ONNX models as Relax modules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tvm
from onnx import inliner, version_converter

from ansor.config import IMPORTS
from ansor.errors import UnsupportedError
from ansor.frontend.importers.from_onnx.converters import converter_of
from ansor.frontend.importers.from_onnx.inputs import examples_of
from ansor.frontend.importers.from_onnx.skeleton import (
    Skeleton,
    completed,
    label,
    read_onnx,
    skeleton_of,
)
from ansor.frontend.importers.from_onnx.source import OnnxSource
from ansor.frontend.importers.from_onnx.translate import place, translate
from ansor.frontend.importers.from_relax import from_relax
from ansor.frontend.importers.sizes import Sizes
from ansor.frontend.importers.source import ImportedModel

_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
_OLDEST = 7  # the first version that broadcasts as all later ones do


def import_onnx(source: object, example_inputs: object, sizes: Sizes) -> ImportedModel:
    """An `onnx.ModelProto`, its bytes or its file, its weights as constants.

    `example_inputs`, one array for each input in their order, or `sizes` fix dynamic dimensions.

    Raises:
        ArgumentError: no such file, no valid model, missing weights, a dynamic dimension, wrong
            `example_inputs`.
        UnsupportedError: an unsupported dtype, or an operator, which is named with its node.
    """
    skeleton = skeleton_of(read_onnx(source), label(source), example_inputs, sizes)
    source = OnnxSource(completed(skeleton), _import_alone, examples_of(example_inputs))
    return from_relax(_imported(skeleton), source)


def _import_alone(model: Any) -> tvm.IRModule:
    return _imported(skeleton_of(model, label(model), None, Sizes()))


def _imported(skeleton: Skeleton) -> tvm.IRModule:
    plain = _modern(inliner.inline_local_functions(skeleton.model))
    for node in plain.graph.node:
        _check_node(node)
    return translate(completed(replace(skeleton, model=plain)))


def _modern(model: Any) -> Any:
    """The model in an operator set that the converters read, if ONNX can convert it."""
    version = next((e.version for e in model.opset_import if e.domain in ("", "ai.onnx")), _OLDEST)
    if version >= _OLDEST:
        return model
    try:
        return version_converter.convert_version(model, IMPORTS.upgraded_opset)
    except Exception as error:  # no adapter for an operator
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UnsupportedError(
            f"the ONNX model has operator set {version}, which cannot be converted: {reason}",
            f"export the model in operator set {IMPORTS.upgraded_opset}",
        ) from error


def _check_node(node: Any) -> None:
    """Raises UnsupportedError for operators that neither ONNX nor this package knows."""
    if node.domain not in _DOMAINS and converter_of(node) is None:
        raise UnsupportedError(f"operator {place(node)} is not ONNX's own", "export without it")
