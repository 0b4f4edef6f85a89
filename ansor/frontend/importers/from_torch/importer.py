"""PyTorch models as Relax modules (the only file of the frontend that imports torch)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import tvm
from torch.export import ExportedProgram
from tvm import relax
from tvm.relax.frontend import detach_params
from tvm.relax.frontend.torch import from_exported_program

from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend.signature import check_dtype, static_extent

# TVM's importer adds a bfloat16 bias to a float32 product and refuses the result.
_NOT_FROM_TORCH = frozenset(("bfloat16",))


def import_torch(model: Any, example_inputs: object) -> tvm.IRModule:
    """A `torch.nn.Module` (with example inputs) or an `ExportedProgram`, its weights as constants.

    A module is captured in eval mode; its own mode is left as it was.

    Raises:
        ArgumentError: missing or wrong `example_inputs`.
        UnsupportedError: what PyTorch cannot export or Relax cannot express.
    """
    with _quiet():
        program = model if isinstance(model, ExportedProgram) else _export(model, example_inputs)
        _check_inputs(program)
        _check_weights(program)
        return _bind(_translate(program.run_decompositions()))


@contextmanager
def _quiet() -> Iterator[None]:
    """PyTorch's exporter warns of its own deprecated calls, which no user can act on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def _export(model: torch.nn.Module, example_inputs: object) -> ExportedProgram:
    inputs = _example_tensors(example_inputs)
    with _eval_mode(model):
        try:
            return torch.export.export(model, inputs)
        except Exception as error:  # the exporter raises errors of many unrelated kinds
            reason = str(error).strip().splitlines()[0]
            raise UnsupportedError(f"torch.export cannot capture the model: {reason}") from error


def _example_tensors(example_inputs: object) -> tuple[torch.Tensor, ...]:
    if example_inputs is None:
        remedy = "a PyTorch module needs example inputs, one tensor per argument of its forward"
        raise ArgumentError("example_inputs", None, remedy)
    several = isinstance(example_inputs, list | tuple)
    values: Any = example_inputs if several else (example_inputs,)
    return tuple(_tensor(index, value) for index, value in enumerate(values))


def _tensor(index: int, value: object) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    kind = type(value).__name__
    raise ArgumentError(f"example_inputs[{index}]", kind, "give torch tensors or NumPy arrays")


@contextmanager
def _eval_mode(model: torch.nn.Module) -> Iterator[None]:
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _check_inputs(program: ExportedProgram) -> None:
    names = set(program.graph_signature.user_inputs)
    for node in program.graph.find_nodes(op="placeholder"):
        if node.name in names:
            _check_input(node)


def _check_input(node: torch.fx.Node) -> None:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        raise UnsupportedError(f"input {node.name!r} is not a tensor but {type(value).__name__}")
    check_dtype(f"input {node.name!r}", _dtype(value), _NOT_FROM_TORCH)
    for axis, extent in enumerate(value.shape):
        static_extent(node.name, axis, extent)


def _check_weights(program: ExportedProgram) -> None:
    for name, value in program.state_dict.items():
        check_dtype(f"weight {name!r}", _dtype(value), _NOT_FROM_TORCH)


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _translate(program: ExportedProgram) -> tvm.IRModule:
    try:
        return from_exported_program(
            program,
            keep_params_as_input=True,
            unwrap_unit_return_tuple=True,
            run_ep_decomposition=False,
        )
    except Exception as error:  # the translator raises assertions, type, value and key errors
        place = _place(program, str(error))
        raise UnsupportedError(f"cannot import the PyTorch model: {error}{place}") from error


def _place(program: ExportedProgram, message: str) -> str:
    """Layers whose operator the message names, as " (in layer a.b)"; empty if none is named."""
    layers = [
        _layer(node)
        for node in program.graph.nodes
        if node.op == "call_function" and node.target.__name__ in message
    ]
    return f" (in {', '.join(dict.fromkeys(layers))})" if layers else ""


def _layer(node: torch.fx.Node) -> str:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = stack[-1][0] if stack else ""
    return f"layer {path}" if path else "the top-level forward"


def _bind(mod: tvm.IRModule) -> tvm.IRModule:
    bare, weights = detach_params(mod)
    function = bare["main"]
    count = int(function.attrs["num_input"])
    names = [parameter.name for parameter in function.params[count:]]
    bound = dict(zip(names, weights.get("main", []), strict=True))
    return relax.transform.BindParams("main", bound)(bare)
