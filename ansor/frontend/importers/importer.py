"""Any model as one Relax function whose weights are constants."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import tvm
from tvm import relax, te, tirx

from ansor.errors import ArgumentError
from ansor.frontend.signature import InputSpec, entry_of, input_specs
from ansor.models import build_model


@dataclass(frozen=True, eq=False)
class ImportedModel:
    """A network: `mod` holds one Relax function, `entry`, with static shapes and bound weights."""

    mod: tvm.IRModule
    entry: str
    inputs: tuple[InputSpec, ...]


def import_model(model: object, example_inputs: object = None) -> ImportedModel:
    """Imports a PyTorch, ONNX or Relax model, or a built-in one by name.

    A PyTorch model is a module or an exported program; an ONNX model is an `onnx.ModelProto`, its
    bytes, or the path of a file that ends in ".onnx".

    `example_inputs` (a tensor or a sequence of tensors, of torch or NumPy) gives a PyTorch
    module's input shapes and dtypes, and fixes an ONNX model's dynamic dimensions; the other kinds
    know theirs.

    Raises:
        ArgumentError: unknown name or kind of model, a file that is missing or broken, missing or
            wrong `example_inputs`, weights that are not bound.
        UnsupportedError: a dynamic shape, an unsupported dtype or operator.
    """
    if is_onnx(model):
        return from_relax(_from_onnx(model, example_inputs))
    if isinstance(model, str):
        return _from_name(model)
    if isinstance(model, tvm.IRModule):
        return from_relax(model)
    if is_torch(model):
        # PyTorch is optional: its door opens only for a model that came from it.
        from ansor.frontend.importers.from_torch.importer import import_torch

        return from_relax(import_torch(model, example_inputs))
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


def _from_onnx(model: object, example_inputs: object) -> tvm.IRModule:
    if find_spec("onnx") is None:
        kind = model if isinstance(model, str) else type(model).__name__
        raise ArgumentError("model", kind, "needs onnx: pip install 'ansor[onnx]'")
    # ONNX is optional, as PyTorch is.
    from ansor.frontend.importers.from_onnx.importer import import_onnx

    return import_onnx(model, example_inputs)


def _from_name(name: str) -> ImportedModel:
    built = build_model(name)
    weights = {key: tvm.runtime.tensor(value) for key, value in built.params.items()}
    return from_relax(relax.transform.BindParams("forward", weights)(built.mod))


def from_relax(mod: tvm.IRModule) -> ImportedModel:
    """A Relax module that holds one function, with its weights bound.

    Raises:
        ArgumentError: weights are still parameters.
        UnsupportedError: several functions, a dynamic shape, an unsupported dtype.
    """
    entry = entry_of(mod)
    function = mod[entry]
    _check_bound(function)
    return ImportedModel(mod, entry, input_specs(function))


def _check_bound(function: relax.Function) -> None:
    attrs = function.attrs or {}
    count = int(attrs.get("num_input", len(function.params)))
    unbound = [str(parameter.name) for parameter in function.params[count:]]
    if unbound:
        remedy = "bind these weights first, with tvm.relax.transform.BindParams"
        raise ArgumentError("model", ", ".join(unbound), remedy)


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
