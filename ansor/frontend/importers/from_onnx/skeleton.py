"""ONNX models in the form that this package reads: complete, valid, static, without weights.

A `Skeleton` is a model whose large weights are kept beside it, so that ONNX's own tools, which
serialise a model on every call, see a few kilobytes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import checker, external_data_helper, helper

from ansor.config import IMPORTS
from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend.importers.from_onnx.inputs import dtype_of_code, fix_shapes
from ansor.frontend.importers.sizes import Sizes
from ansor.frontend.signature import check_dtype

# Of the first version that lets initializers be constants rather than defaults of inputs.
_IR_VERSION = 4


@dataclass(frozen=True, eq=False)
class Skeleton:
    """A model whose `weights` are declared among its inputs, after the `names` of the real ones."""

    model: Any
    names: tuple[str, ...]
    weights: tuple[Any, ...]


def read_onnx(source: Any) -> Any:
    """The `onnx.ModelProto` in memory, in bytes or in a file, with all its weights.

    Raises:
        ArgumentError: no such file, not ONNX, weights that are missing.
    """
    where = label(source)
    if isinstance(source, onnx.ModelProto):
        model = source
    elif isinstance(source, bytes):
        model = _parse(source, where)
    else:
        model = _read_file(Path(source))
    _check_complete(model, where)
    return model


def label(source: Any) -> str:
    """The name of the model in messages."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else type(source).__name__


def _read_file(path: Path) -> Any:
    where = os.fspath(path)
    try:
        model = _parse(path.read_bytes(), where)
    except FileNotFoundError as error:
        raise ArgumentError("model", where, "no such file; give one that exists") from error
    except OSError as error:
        raise ArgumentError("model", where, f"cannot be read: {error.strerror}") from error
    try:
        external_data_helper.load_external_data_for_model(model, os.fspath(path.parent))
    except Exception as error:  # ONNX's checker, the system and NumPy raise unrelated errors
        remedy = f"put the files of its weights beside it, complete ({_first_line(error)})"
        raise ArgumentError("model", where, remedy) from error
    return model


def _parse(data: bytes, where: str) -> Any:
    try:
        return onnx.load_model_from_string(data)
    except Exception as error:  # protobuf's errors have no base of their own
        remedy = f"is no ONNX model, or is cut short ({_first_line(error)}); export it again"
        raise ArgumentError("model", where, remedy) from error


def _check_complete(model: Any, where: str) -> None:
    missing = [
        tensor.name
        for tensor in model.graph.initializer
        if external_data_helper.uses_external_data(tensor)
    ]
    if missing:
        names = ", ".join(missing)
        remedy = f"its weights {names} are in other files; give the path of its .onnx file"
        raise ArgumentError("model", where, remedy)


def skeleton_of(model: Any, where: str, example_inputs: object, sizes: Sizes) -> Skeleton:
    """The model with static shapes, those of `example_inputs` or `sizes` if there are any.

    `where` is its name in messages.

    Raises:
        ArgumentError: not valid ONNX, a dynamic dimension, wrong `example_inputs`.
        UnsupportedError: an input that is no tensor, an unsupported dtype.
    """
    graph = model.graph
    given = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in given]
    _check_dtypes(inputs, graph)
    small, weights = _by_size(graph.initializer)
    declared = [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in weights]
    fixed = fix_shapes(inputs, example_inputs, sizes)
    bare = helper.make_graph(graph.node, graph.name, [*fixed, *declared], graph.output, small)
    version = max(model.ir_version, _IR_VERSION)
    made = helper.make_model(
        bare, opset_imports=model.opset_import, functions=model.functions, ir_version=version
    )
    _check_valid(made, weights, where)
    return Skeleton(made, tuple(value.name for value in inputs), tuple(weights))


def completed(skeleton: Skeleton) -> Any:
    """The whole model: real inputs only, and every weight."""
    model = onnx.ModelProto()
    model.CopyFrom(skeleton.model)
    real = [value for value in model.graph.input if value.name in skeleton.names]
    del model.graph.input[:]
    model.graph.input.extend(real)
    model.graph.initializer.extend(skeleton.weights)
    return model


def _by_size(tensors: Any) -> tuple[list[Any], list[Any]]:
    """Small tensors and weights."""
    small: list[Any] = []
    weights: list[Any] = []
    for tensor in tensors:
        is_small = np.prod(tensor.dims, dtype=np.int64) <= IMPORTS.max_known
        (small if is_small else weights).append(tensor)
    return small, weights


def _check_valid(model: Any, weights: list[Any], where: str) -> None:
    lenient = onnx.ModelProto()
    lenient.CopyFrom(model)
    for output in lenient.graph.output:  # the checker wants types, which no runtime needs
        output.type.tensor_type.elem_type = output.type.tensor_type.elem_type or 1
        output.type.tensor_type.shape.SetInParent()
    try:
        checker.check_model(lenient)
        for tensor in weights:
            checker.check_tensor(tensor)
    except checker.ValidationError as error:
        reason = " ".join(str(error).split())
        remedy = f"is no valid ONNX model ({reason}); export it again"
        raise ArgumentError("model", where, remedy) from error


def _check_dtypes(inputs: list[Any], graph: Any) -> None:
    if graph.sparse_initializer:
        name = graph.sparse_initializer[0].values.name
        raise UnsupportedError(f"weight {name!r} is sparse", "export it dense")
    for value in inputs:
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            raise UnsupportedError(
                f"input {value.name!r} is not a tensor but {kind}",
                "export the model with tensors as inputs",
            )
        check_dtype(f"input {value.name!r}", dtype_of_code(value.type.tensor_type.elem_type))
    for tensor in graph.initializer:
        check_dtype(f"weight {tensor.name!r}", dtype_of_code(tensor.data_type))


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
