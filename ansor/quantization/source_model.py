"""The float model as ONNX, its nodes named."""

from __future__ import annotations

import os
from typing import Any

import onnx

from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend.importers.from_onnx.inputs import dtype_of_code
from ansor.frontend.importers.from_onnx.skeleton import read_onnx
from ansor.frontend.importers.importer import is_onnx, is_torch
from ansor.quantization.quiet import quiet
from ansor.quantization.samples import Declared


def float_model(model: object, example_inputs: object) -> Any:
    """An `onnx.ModelProto` whose nodes have names of their own.

    Args:
        model: ONNX, or a PyTorch module or exported program, which PyTorch exports.
        example_inputs: arguments of a PyTorch module; ignored for other models.

    Raises:
        ArgumentError: another kind of model, or no ONNX.
        UnsupportedError: PyTorch cannot export the model.
    """
    if is_onnx(model):
        return _named(read_onnx(model))
    if is_torch(model):
        return _named(_exported(model, example_inputs))
    given = os.fspath(model) if isinstance(model, str | os.PathLike) else type(model).__name__
    raise ArgumentError("model", given, "give a PyTorch module, an exported program or ONNX")


def _exported(model: Any, example_inputs: object) -> Any:
    import torch  # optional, and present: the model came from it

    from ansor.frontend.importers.from_torch.capture import examples_for, export_program

    is_program = isinstance(model, torch.export.ExportedProgram)
    program = model if is_program else export_program(model, examples_for(model, example_inputs))
    try:
        with quiet():
            return torch.onnx.export(program, dynamo=True, verbose=False).model_proto
    except Exception as error:  # the exporter raises errors of many unrelated kinds
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UnsupportedError(
            f"torch.onnx cannot export the model: {reason}", "give an ONNX file"
        ) from error


def _named(model: Any) -> Any:
    """A copy with a name for each node: the quantiser tells them apart by it."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    taken: set[str] = set()
    for place, node in enumerate(made.graph.node):
        if not node.name or node.name in taken:
            node.name = f"{node.op_type}_{place}"
        taken.add(node.name)
    return made


def declared_inputs(model: Any) -> list[Declared]:
    """The inputs of a model that are no weights."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [_declared(value) for value in model.graph.input if value.name not in weights]


def _declared(value: Any) -> Declared:
    ty = value.type.tensor_type
    shape = tuple(int(d.dim_value) if d.HasField("dim_value") else None for d in ty.shape.dim)
    return Declared(value.name, dtype_of_code(ty.elem_type), shape)
