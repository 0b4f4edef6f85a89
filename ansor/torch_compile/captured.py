"""A captured graph that is compiled for each size of its inputs, and anew for changed weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.convert_frame import compile_lock

from ansor.errors import GraphWarning, UnsupportedError
from ansor.torch_compile.functional import FunctionalGraph
from ansor.torch_compile.parts import Network, Parts, divided, with_views
from ansor.torch_compile.weights import Weights

Tune = Callable[[torch.nn.Module, Sequence[torch.Tensor]], Callable[..., Any]]


@dataclass(frozen=True, eq=False)
class Compiled:
    """A graph that is compiled for one size of its inputs.

    Attributes:
        run: takes the arguments of the captured graph.
        weights: that it holds as constants.
    """

    run: Callable[..., Any]
    weights: Weights


class CapturedGraph:
    """A graph of TorchDynamo.

    Args:
        graph: with parameters and buffers as inputs.
        weights: places of the inputs that may become constants.
        tune: makes a fast network of a module and its inputs.
        are_frozen: whether the constants never change in place.
    """

    def __init__(
        self,
        graph: torch.fx.GraphModule,
        weights: Sequence[int],
        tune: Tune,
        are_frozen: bool = False,
    ) -> None:
        self._graph, self._tune, self._are_frozen = graph, tune, are_frozen
        self._constant = set(weights)
        count = len(graph.graph.find_nodes(op="placeholder"))
        self._inputs = [place for place in range(count) if place not in self._constant]
        self._compiled: dict[Any, Compiled] = {}

    def run(self, *args: Any) -> Any:
        """The results of the graph.

        Raises:
            AnsorError: see `auto_schedule`; a graph that it does not support runs in PyTorch.
        """
        sizes = tuple(_size(args[place]) for place in self._inputs)
        found = self._compiled.get(sizes)
        if found is None or not found.weights.are_in(args):
            with compile_lock:  # PyTorch traces one graph at a time
                found = self._compiled.get(sizes)
                if found is None or not found.weights.are_in(args):
                    found = self._compiled[sizes] = self._compile(args, found)
        return found.run(*args)

    def _compile(self, args: Sequence[Any], before: Compiled | None) -> Compiled:
        if before is not None:
            self._note_changes(before.weights.changed(args), args)
        elif len(self._compiled) == 1 and self._is_symbolic:
            _warn("ansor compiles a graph with symbolic sizes for each size that it is called with")
        try:
            return self._with_network(args)
        except UnsupportedError as error:
            _warn(f"ansor runs a graph in PyTorch: {error}")
            return Compiled(self._graph, Weights.of(args, ()))

    def _note_changes(self, changed: Sequence[int], args: Sequence[Any]) -> None:
        """Buffers that change become inputs; parameters stay constants."""
        _warn("ansor compiles a graph again because parameters or buffers have changed")
        self._constant -= {x for x in changed if not isinstance(args[x], torch.nn.Parameter)}

    @property
    def _is_symbolic(self) -> bool:
        nodes = self._graph.graph.find_nodes(op="placeholder")
        return any(isinstance(node.meta.get("example_value"), torch.SymInt) for node in nodes)

    def _with_network(self, args: Sequence[Any]) -> Compiled:
        functional = FunctionalGraph(self._graph, args)
        constants: dict[int, torch.Tensor] = {}
        places = []
        for number, origin in enumerate(functional.origins):
            if origin.place is None and not origin.is_written:
                constants[number] = _attribute(self._graph, origin.name)
            elif origin.place in self._constant and not origin.is_written:
                places.append(origin.place)
                constants[number] = args[origin.place]
        weights = Weights.of(args, places, self._are_frozen)
        parts = divided(functional.graph, constants)
        values = [
            _attribute(self._graph, x.name) if x.place is None else args[x.place]
            for x in functional.origins
        ]
        network = self._network(parts, [values[place] for place in parts.inputs])
        if functional.is_plain and parts.views is None:
            used = [x for n in parts.inputs if (x := functional.origins[n].place) is not None]
            if len(used) == len(parts.inputs):
                return Compiled(lambda *args: network(*(args[x] for x in used)), weights)
        return Compiled(functional.with_network(with_views(network, parts)), weights)

    def _network(self, parts: Parts, inputs: Sequence[Any]) -> Network:
        """The network of the parts as a function of its inputs.

        Raises:
            UnsupportedError: it has what cannot be imported.
        """
        if not any(node.op == "call_function" for node in parts.network.graph.nodes):
            return lambda *_: ()
        if not inputs:
            raise UnsupportedError(
                "no tensor among its inputs", "give the graph a tensor as an input"
            )
        with torch.inference_mode(False), torch.no_grad():
            tuned = self._tune(parts.network, [tensor.detach().clone() for tensor in inputs])
        if not any(parts.layouts):
            return tuned
        return lambda *args: [*map(_laid_out, tuned(*args), parts.layouts)]


def _attribute(graph: torch.fx.GraphModule, name: str) -> torch.Tensor:
    module, _, leaf = name.rpartition(".")
    found: torch.Tensor = getattr(graph.get_submodule(module), leaf)
    return found


def _size(value: Any) -> Any:
    """The properties of an argument that a graph is compiled for."""
    return (value.shape, value.stride()) if isinstance(value, torch.Tensor) else value


def _laid_out(tensor: torch.Tensor, strides: tuple[int, ...] | None) -> torch.Tensor:
    if strides is None:
        return tensor
    return tensor.new_empty_strided(tensor.shape, strides).copy_(tensor)


def _warn(text: str) -> None:
    warnings.warn(text, GraphWarning, stacklevel=3)
