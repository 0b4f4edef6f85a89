"""Divides a functional graph: a network that is tuned, and views that PyTorch makes of its results.

Results that share memory with each other or with an input have to share it afterwards, too. The
network therefore returns the tensor that they are views of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

Network = Callable[..., Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a functional graph.

    Attributes:
        network: takes the inputs at the places `inputs`; returns a tuple of tensors.
        inputs: places among the inputs of the whole graph.
        layouts: strides of the network's results; None where they are contiguous.
        views: takes all inputs of the whole graph and the network's results; returns the results of
            the whole graph. None where these are the network's results.
    """

    network: GraphModule
    inputs: tuple[int, ...]
    layouts: tuple[tuple[int, ...] | None, ...]
    views: GraphModule | None


def divided(whole: GraphModule, constants: Mapping[int, torch.Tensor]) -> Parts:
    """Divides a graph.

    Args:
        whole: writes to nothing.
        constants: values of inputs, by their places.
    """
    inputs = list(whole.graph.find_nodes(op="placeholder"))
    given = whole.graph.output_node().args[0]
    results = _leaves(given)
    views = _views(inputs, results)
    roots = dict.fromkeys(_root(node, views) for node in results)
    computed = [node for node in roots if node not in inputs]
    network, places = _network(whole, inputs, computed, constants)
    return Parts(
        network,
        places,
        tuple(_layout(node.meta["val"]) for node in computed),
        None if computed == list(given) else _view_graph(whole, inputs, computed, views),
    )


def _leaves(value: Any) -> list[Node]:
    found: list[Node] = []
    torch.fx.map_arg(value, found.append)
    return found


def _views(inputs: Sequence[Node], results: Sequence[Node]) -> set[Node]:
    """Nodes that PyTorch computes: views on the way to results that share memory."""
    count = Counter(key for node in dict.fromkeys(results) for key in _memories(node))
    shared = {key for node in inputs for key in _memories(node)}
    shared |= {key for key, users in count.items() if users > 1}
    found: set[Node] = set()
    for node in results:
        while node not in inputs and shared.intersection(_memories(node)):
            viewed = _viewed(node)
            if viewed is None:
                break
            found.add(node)
            node = viewed
    return found


def _viewed(node: Node) -> Node | None:
    """The operand that a node is a view of; None for a node with its own memory."""
    own = set(_memories(node))
    return next((x for x in node.all_input_nodes if own.intersection(_memories(x))), None)


def _root(node: Node, views: set[Node]) -> Node:
    while node in views:
        viewed = _viewed(node)
        assert viewed is not None
        node = viewed
    return node


def _memories(node: Node) -> list[int]:
    """Identities of the storages of a node's tensors."""
    values = torch.utils._pytree.tree_leaves(node.meta.get("val"))
    return [x.untyped_storage()._cdata for x in values if isinstance(x, torch.Tensor)]


def _layout(value: torch.Tensor) -> tuple[int, ...] | None:
    """Strides of a dense tensor; None where these are the usual ones."""
    dense = torch.empty_like(value).stride() == value.stride()
    return tuple(map(int, value.stride())) if dense and not value.is_contiguous() else None


def _network(
    whole: GraphModule,
    inputs: Sequence[Node],
    results: Sequence[Node],
    constants: Mapping[int, torch.Tensor],
) -> tuple[GraphModule, tuple[int, ...]]:
    """The graph of some results, and the places of its inputs."""
    graph, copies, values = Graph(), dict[Node, Node](), dict[str, Any]()
    for place, node in enumerate(inputs):
        if place in constants:
            name = f"constant{place}"
            values[name] = constants[place].detach()
            copies[node] = graph.get_attr(name)
        else:
            copies[node] = graph.placeholder(node.name)
    _copy(whole, graph, copies, set(whole.graph.nodes))
    graph.output(tuple(copies[node] for node in results))
    graph.eliminate_dead_code()
    kept = [place for place, node in enumerate(inputs) if copies[node].users]
    for place, node in enumerate(inputs):
        if place not in kept:
            graph.erase_node(copies[node])
    attributes = {n.target for n in whole.graph.find_nodes(op="get_attr")}
    values.update({str(name): getattr(whole, str(name)) for name in attributes})
    return GraphModule(values, graph), tuple(place for place in kept if place not in constants)


def _view_graph(
    whole: GraphModule, inputs: Sequence[Node], computed: Sequence[Node], views: set[Node]
) -> GraphModule:
    graph = Graph()
    copies = {node: graph.placeholder(node.name) for node in (*inputs, *computed)}
    _copy(whole, graph, copies, views)
    results = torch.fx.map_arg(whole.graph.output_node().args[0], lambda node: copies[node])
    graph.output(results)
    return GraphModule(torch.nn.Module(), graph)


def _copy(whole: GraphModule, graph: Graph, copies: dict[Node, Node], nodes: set[Node]) -> None:
    """Copies some nodes to another graph, except nodes that have a copy."""
    for node in whole.graph.nodes:
        if node in nodes and node not in copies and node.op not in ("placeholder", "output"):
            copies[node] = graph.node_copy(node, lambda operand: copies[operand])


def with_views(network: Network, parts: Parts) -> Network:
    """The whole graph as a function of all its inputs.

    Args:
        network: computes that of the parts.
    """

    def run(*args: Any) -> Any:
        results = network(*(args[place] for place in parts.inputs))
        return results if parts.views is None else parts.views.forward(*args, *results)

    return run
