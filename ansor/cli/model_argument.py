"""Forms of MODEL on the command line."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ansor import workloads
from ansor.errors import ArgumentError
from ansor.frontend.importers.importer import is_onnx
from ansor.models import model_names


def parse_model(text: str) -> object:
    """The model that `text` names, as `auto_schedule` takes it.

    Raises:
        ArgumentError: no such model, file or size.
    """
    name, _, sizes = text.partition(":")
    if text.endswith(".pt2"):
        return _read_exported(text)
    if is_onnx(text):
        return _existing(text)
    if name in workloads.names():
        return list(workloads.build(name, **_operator(text, sizes)).tensors)
    if name in model_names():
        return text
    known = ", ".join((*model_names(), *workloads.names()))
    raise ArgumentError("model", text, f"give a .pt2 or .onnx file or one of {known}")


def _existing(path: str) -> str:
    if not Path(path).is_file():
        raise ArgumentError("model", path, "no such file; give one that exists")
    return path


def _read_exported(path: str) -> object:
    _existing(path)
    if find_spec("torch") is None:
        raise ArgumentError("model", path, "needs PyTorch: pip install 'ansor[torch]'")
    # PyTorch is optional: only an exported program needs it.
    import torch

    try:
        return torch.export.load(path)
    except Exception as error:  # zip, pickle and PyTorch raise errors of many unrelated kinds
        raise ArgumentError(
            "model",
            path,
            f"is no exported program; give what torch.export.save wrote: {error}",
        ) from error


def _operator(model: str, text: str) -> dict[str, Any]:
    """The sizes of an operator, and its dtype if `text` has one."""
    pairs = (part.partition("=") for part in text.split(",") if part)
    given: dict[str, Any] = {name.strip(): value.strip() for name, _, value in pairs}
    dtype = {name: given.pop(name) for name in ("dtype",) if name in given}
    try:
        return {**dtype, **{name: int(value) for name, value in given.items()}}
    except ValueError as error:
        raise ArgumentError("model", model, "write sizes as name=integer,...") from error
