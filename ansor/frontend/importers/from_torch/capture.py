"""Capturing a PyTorch module as an exported program, with the inputs that a user gives."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend.importers.sizes import Sizes

_NUMBERS = (bool, int, float, type(None))


@dataclasses.dataclass(frozen=True)
class Examples:
    """Arguments of a module's `forward`, their arrays as tensors."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def examples_for(model: torch.nn.Module, example_inputs: object) -> Examples:
    """The arguments that a user gives: a tensor, a sequence of arguments, or arguments by name.

    Each tensor is copied, because an exporter treats one tensor in two places as one input.

    Raises:
        ArgumentError: no `example_inputs`, an unknown argument, or a value that is neither a tensor
            nor a number.
    """
    if example_inputs is None:
        remedy = "a PyTorch module needs example inputs, one for each argument of its forward"
        raise ArgumentError("example_inputs", None, remedy)
    if isinstance(example_inputs, Mapping):
        return _by_position(model, _tensors("example_inputs", dict(example_inputs)))
    several = isinstance(example_inputs, list | tuple)
    given: Any = tuple(example_inputs) if several else (example_inputs,)  # type: ignore[arg-type]
    return Examples(_tensors("example_inputs", given), {})


def _by_position(model: torch.nn.Module, named: dict[str, Any]) -> Examples:
    """Arguments by name in the order of the parameters, so that both ways of a call agree."""
    try:
        bound = inspect.signature(model.forward).bind(**named)
    except TypeError as error:
        raise ArgumentError(
            "example_inputs", list(named), f"give the arguments of forward: {error}"
        ) from error
    return Examples(bound.args, bound.kwargs)


def _tensors(place: str, value: Any) -> Any:
    return pytree.tree_map_with_path(lambda path, leaf: _leaf(f"{place}{_text(path)}", leaf), value)


def _text(path: Any) -> str:
    return "".join(map(str, path))


def _leaf(place: str, value: object) -> Any:
    if isinstance(value, np.ndarray):
        return tensor_of(value)
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, _NUMBERS):
        return value
    remedy = "give torch tensors, NumPy arrays, numbers or None, also nested"
    raise ArgumentError(place, type(value).__name__, remedy)


def tensor_of(array: Any) -> torch.Tensor:
    """A tensor with the array's values, in separate memory."""
    dense = np.array(array, order="C")
    if dense.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(dense.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(dense)


def array_of(tensor: torch.Tensor) -> Any:
    """The tensor's values as a NumPy array in separate memory."""
    dense = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().clone()
    if dense.dtype == torch.bfloat16:
        return dense.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return dense.numpy()


def export_program(model: torch.nn.Module, examples: Examples) -> ExportedProgram:
    """The module in eval mode as an exported program; its own mode does not change.

    Raises:
        UnsupportedError: PyTorch cannot export the module.
    """
    with eval_mode(model):
        try:
            return _exported(model, examples)
        except Exception as error:  # the exporter raises errors of many unrelated kinds
            if _register_dataclasses(model, examples):
                return export_program(model, examples)
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise UnsupportedError(
                f"torch.export cannot capture the model: {reason}",
                "see the documentation of torch.export, or give an ExportedProgram",
            ) from error


def _exported(model: torch.nn.Module, examples: Examples) -> ExportedProgram:
    return torch.export.export(model, examples.args, dict(examples.kwargs))


def _register_dataclasses(model: torch.nn.Module, examples: Examples) -> bool:
    """Lets the exporter look into dataclasses among the results; whether there were new ones."""
    result = _result(model, examples)
    kinds = {type(value) for value in _values(result) if dataclasses.is_dataclass(value)}
    unknown = [kind for kind in kinds if kind not in pytree.SUPPORTED_NODES]
    for kind in unknown:
        torch.export.register_dataclass(kind)
    return bool(unknown)


def _result(model: torch.nn.Module, examples: Examples) -> Any:
    """The result of a copy of the module; None if it cannot be copied or run."""
    args, kwargs = pytree.tree_map(_copy, (examples.args, dict(examples.kwargs)))
    try:
        with torch.no_grad():
            return copy.deepcopy(model)(*args, **kwargs)
    except Exception:  # the exporter ran the same code, and its error is reported
        return None


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _values(value: Any) -> Iterator[Any]:
    """The value and all its parts, in dictionaries, sequences and dataclasses."""
    yield value
    parts: Sequence[Any] = ()
    if isinstance(value, Mapping):
        parts = tuple(value.values())
    elif isinstance(value, list | tuple):
        parts = value
    elif dataclasses.is_dataclass(value):
        parts = [getattr(value, part.name) for part in dataclasses.fields(value)]
    for part in parts:
        yield from _values(part)


@contextmanager
def eval_mode(model: torch.nn.Module) -> Iterator[None]:
    """Puts the module into eval mode inside the context."""
    training = [module for module in model.modules() if module.training]
    for module in training:  # an exported program's module has no `eval`
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def resized(examples: Examples, names: Sequence[str], sizes: Sizes) -> Examples:
    """The examples with other shapes for tensors that are arguments themselves.

    Values are repeated from the beginning, so that indices stay legal.

    Raises:
        ArgumentError: no such argument, or another number of dimensions.
    """
    if not sizes.shapes:
        return examples
    bound = dict(zip(names, examples.args, strict=False)) | dict(examples.kwargs)
    tensors = [name for name, value in bound.items() if isinstance(value, torch.Tensor)]
    sizes.check_names(tensors, ())
    changed = {name: _resized(name, bound[name], shape) for name, shape in sizes.shapes.items()}
    values = {**bound, **changed}
    args = tuple(values[name] for name in list(bound)[: len(examples.args)])
    return Examples(args, {name: values[name] for name in examples.kwargs})


def _resized(name: str, tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    if len(shape) != tensor.dim():
        raise ArgumentError("shapes", {name: shape}, f"{name} has {tensor.dim()} dimensions")
    return tensor_of(np.resize(array_of(tensor), tuple(shape)))
