"""Functions of a compiled network as text: their loops in TensorIR, and their machine code."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ansor.errors import ArgumentError
from ansor.frontend.deploy.built import DeployableNetwork
from ansor.targets.build import lowered_function
from ansor.targets.registry import backend_of
from ansor.targets.target import target_text


def source_text(network: DeployableNetwork, function: str | None) -> str:
    """The scheduled loops of a function in TensorIR, which prints as Python.

    Args:
        network: that has the function.
        function: its name; None for the only one.

    Raises:
        ArgumentError: there is no such function, or there are several.
    """
    name, func = _function(network, function)
    return str(func.with_attr("global_symbol", name).script())


def assembly_text(network: DeployableNetwork, function: str | None, threads: int) -> str:
    """The compiled text of a function: assembly for a CPU, CUDA's language for a GPU.

    Args:
        threads: that the network runs on.

    Other arguments and errors are those of `source_text`.
    """
    (_, func), target = _function(network, function), network.target
    module: Any = lowered_function(func, target_text(target, threads))
    if backend_of(target).execution.on_host:
        return str(module.inspect_source("s"))
    return str(module.imports[0].inspect_source())


def _function(network: DeployableNetwork, name: str | None) -> tuple[str, tirx.PrimFunc]:
    """A function and its name."""
    functions = {v.name_hint: f for v, f in network.bare().functions.items()}
    found = {key: f for key, f in functions.items() if isinstance(f, tirx.PrimFunc)}
    if name is None and len(found) == 1:
        return next(iter(found.items()))
    if name is None or name not in found:
        raise ArgumentError("function", name, f"give one of {', '.join(sorted(found))}")
    return name, found[name]
