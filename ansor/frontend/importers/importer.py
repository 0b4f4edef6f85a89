"""Any model as one Relax function whose weights are constants."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import tvm
from tvm import relax, te, tirx

from ansor.errors import ArgumentError
from ansor.frontend.importers.from_relax import from_relax
from ansor.frontend.importers.sizes import Sizes
from ansor.frontend.importers.source import ImportedModel
from ansor.models import build_model


def import_model(
    model: object, example_inputs: object = None, sizes: Sizes | None = None
) -> ImportedModel:
    """Imports a PyTorch, ONNX or Relax model, or a built-in one by name.

    Args:
        model: a PyTorch module or exported program; an ONNX model (an `onnx.ModelProto`, its bytes,
            or the path of a file that ends in ".onnx"); a Relax module; a name.
        example_inputs: arguments of a PyTorch module: one tensor, a sequence of arguments, or a
            mapping of their names; nested as the module takes them, of torch or NumPy. For an ONNX
            model, arrays that fix its dynamic dimensions. The other kinds need none.
        sizes: of the dynamic dimensions of an ONNX model or an exported program.

    Raises:
        ArgumentError: unknown name or kind of model, a file that is missing or broken, missing or
            wrong `example_inputs` or sizes, weights that are not bound.
        UnsupportedError: a dynamic shape, an unsupported dtype or operator.
    """
    given = Sizes() if sizes is None else sizes
    if is_onnx(model):
        return _from_onnx(model, example_inputs, given)
    if isinstance(model, str):
        return _from_name(model)
    if isinstance(model, tvm.IRModule):
        return from_relax(model)
    if is_torch(model):
        # PyTorch is optional: its door opens only for a model that came from it.
        from ansor.frontend.importers.from_torch.importer import import_torch

        return import_torch(model, example_inputs, given)
    raise ArgumentError(
        "model",
        type(model).__name__,
        "give a torch.nn.Module, a torch ExportedProgram, a Relax IRModule, an ONNX model (a "
        "ModelProto, bytes or the path of a .onnx file) or a built-in name",
    )


def is_torch(model: object) -> bool:
    """Whether the object is a PyTorch module or exported program, found without importing torch."""
    ours = {("torch", "Module"), ("torch", "ExportedProgram")}
    return any((t.__module__.split(".")[0], t.__name__) in ours for t in type(model).__mro__)


def is_onnx(model: object) -> bool:
    """Whether the object is an ONNX model, its bytes or its file, found without importing onnx."""
    if isinstance(model, str | os.PathLike):
        return os.fspath(model).lower().endswith(".onnx")
    kind = type(model)
    is_proto = (kind.__module__.split(".")[0], kind.__name__) == ("onnx", "ModelProto")
    return is_proto or isinstance(model, bytes)


def _from_onnx(model: object, example_inputs: object, sizes: Sizes) -> ImportedModel:
    if find_spec("onnx") is None:
        kind = model if isinstance(model, str) else type(model).__name__
        raise ArgumentError("model", kind, "needs onnx: pip install 'ansor[onnx]'")
    # ONNX is optional, as PyTorch is.
    from ansor.frontend.importers.from_onnx.importer import import_onnx

    return import_onnx(model, example_inputs, sizes)


def _from_name(name: str) -> ImportedModel:
    built = build_model(name)
    weights = {key: tvm.runtime.tensor(value) for key, value in built.params.items()}
    return from_relax(relax.transform.BindParams("forward", weights)(built.mod))


def from_te(tensors: Sequence[te.Tensor]) -> tirx.PrimFunc:
    """The PrimFunc that computes the last of these TE tensors from the first ones.

    Raises:
        ArgumentError: not a non-empty sequence of TE tensors.
    """
    listed: list[Any] = list(tensors)
    if not listed or not all(isinstance(tensor, te.Tensor) for tensor in listed):
        kinds = [type(tensor).__name__ for tensor in listed]
        raise ArgumentError("model", kinds, "give TE tensors: inputs first, then outputs")
    return te.create_prim_func(listed)
