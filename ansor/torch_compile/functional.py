"""Captured graphs without writes: AOTAutograd turns them into results, and writes them back.

It also makes results that are views of inputs anew from these inputs. Its wrapper calls a network
with the inputs in its order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.descriptors import (
    BufferAOTInput,
    InputMutationAOTOutput,
    ParamAOTInput,
    PlainAOTInput,
    PlainAOTOutput,
)

from ansor.errors import UnsupportedError
from ansor.torch_compile.parts import Network


@dataclass(frozen=True)
class Origin:
    """The origin of an input of a functional graph.

    Attributes:
        place: among the arguments of the captured graph; None for a constant of that graph.
        name: of the constant.
        is_written: whether the captured graph writes to it.
    """

    place: int | None
    name: str = ""
    is_written: bool = False


class FunctionalGraph:
    """A captured graph in operators of ATen that write to nothing.

    Args:
        captured: the graph.
        args: of a call; their sizes are those of all calls.

    Attributes:
        graph: takes the tensors of the captured graph, and returns results and written tensors.
        origins: of its inputs.
        is_plain: whether its results are those of the captured graph, which writes to nothing.

    Raises:
        UnsupportedError: inputs share memory, and one of them is written; or gradients are needed.
    """

    graph: torch.fx.GraphModule

    def __init__(self, captured: torch.fx.GraphModule, args: Sequence[Any]) -> None:
        self._network: Network | None = None
        make = aot_autograd(fw_compiler=_refuse_training, inference_compiler=self._take)
        self._wrapper = make(captured, args)
        nodes = self.graph.graph.find_nodes(op="placeholder")
        written = _written(self.graph)
        self.origins = [_origin(node, written) for node in nodes]
        results = self.graph.graph.output_node().meta["desc"]
        self.is_plain = list(results) == [PlainAOTOutput(i) for i in range(len(results))]

    def _take(self, graph: torch.fx.GraphModule, _: Sequence[Any]) -> Any:
        self.graph = graph
        return make_boxed_func(self._run_network)

    def _run_network(self, *args: Any) -> Sequence[Any]:
        assert self._network is not None
        return self._network(*args)

    def with_network(self, network: Network) -> Callable[..., Any]:
        """The captured graph as a function that calls a network.

        Args:
            network: computes what `graph` computes.
        """
        self._network = network
        return self._wrapper  # type: ignore[no-any-return]


def _written(graph: torch.fx.GraphModule) -> set[Any]:
    """Descriptions of the inputs whose new values are among the results."""
    results = graph.graph.output_node().meta["desc"]
    return {r.mutated_input for r in results if isinstance(r, InputMutationAOTOutput)}


def _origin(node: torch.fx.Node, written: set[Any]) -> Origin:
    found = node.meta["desc"]
    if isinstance(found, PlainAOTInput):
        return Origin(found.idx, is_written=found in written)
    if isinstance(found, ParamAOTInput | BufferAOTInput):
        return Origin(None, found.target, found in written)
    raise UnsupportedError(
        "inputs share memory, and the graph writes to one of them",
        "give inputs that share no memory",
    )


def _refuse_training(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
    raise UnsupportedError("the graph needs gradients", "call it under torch.no_grad()")
