"""The backends by the kind of their targets."""

from __future__ import annotations

import importlib
from typing import Any

from tvm.target import Target

from ansor.errors import UnsupportedError
from ansor.targets.backend import Backend
from ansor.targets.cpu.backend import CPU
from ansor.targets.cuda.backend import CUDA

_BACKENDS: dict[str, Backend[Any]] = {backend.kind: backend for backend in (CPU, CUDA)}


def register(backend: Backend[Any]) -> None:
    """Makes a kind of target known to this process, or replaces its backend.

    Worker processes import the backend from its `home`.
    """
    _BACKENDS[backend.kind] = backend


def load_backend(home: str) -> Backend[Any]:
    """Imports the backend that "module:NAME" names, and registers it."""
    module, _, name = home.partition(":")
    backend: Backend[Any] = getattr(importlib.import_module(module), name)
    register(backend)
    return backend


def backends() -> tuple[Backend[Any], ...]:
    """All known backends, built-in ones first."""
    return tuple(_BACKENDS.values())


def backend_of(target: Target | str) -> Backend[Any]:
    """The backend of a target, or of a target's text.

    Raises:
        UnsupportedError: there is none for the target's kind.
    """
    kind = str(Target(target).kind.name)
    if kind not in _BACKENDS:
        known = " and ".join(f"{one.title} ({one.kind})" for one in backends())
        raise UnsupportedError(f"target {kind!r} cannot be tuned", f"give one of {known}")
    return _BACKENDS[kind]


def code_target(text: str) -> Target:
    """The target of the code generator, given the text of a task's target."""
    return backend_of(text).compiler.target(Target(text))


def host_text(text: str) -> str:
    """Text of the target of functions that run on this machine, given the text of a task's
    target."""
    backend = backend_of(text)
    if not backend.execution.on_host:
        return CPU.kind
    try:
        backend.syntax.check_here(Target(text))
    except UnsupportedError:  # the code of another processor
        return CPU.kind
    return text
