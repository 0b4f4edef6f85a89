"""The cheapest of two choices for each node of a graph, with a cost for different neighbours.

It is a minimum cut (Greig, Porteous and Seheult, "Exact Maximum A Posteriori Estimation for Binary
Images", 1989). The side of the source is one choice, the side of the sink the other. The cut
separates each node from the side that it does not choose, at the cost of its choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx

from ansor.config import PRECISION

_SOURCE, _SINK = "source", "sink"


@dataclass(frozen=True)
class Costs:
    """The cost of a node's choices in seconds; infinite for an impossible choice."""

    first: float
    second: float


def cheapest_second(
    nodes: Mapping[int, Costs], conversions: Mapping[tuple[int, int], float]
) -> frozenset[int]:
    """The nodes with the second choice in the cheapest assignment.

    Args:
        nodes: by number; each has at least one choice.
        conversions: seconds that two neighbours cost if their choices differ.
    """
    graph: Any = nx.DiGraph()
    graph.add_nodes_from((_SOURCE, _SINK))
    for node, costs in nodes.items():
        _add(graph, _SOURCE, node, costs.second)
        _add(graph, node, _SINK, costs.first)
    for (one, other), seconds in conversions.items():
        _add(graph, one, other, seconds)
        _add(graph, other, one, seconds)
    _, (_, second) = nx.minimum_cut(graph, _SOURCE, _SINK)
    return frozenset(second - {_SINK})


def total_s(
    nodes: Mapping[int, Costs],
    conversions: Mapping[tuple[int, int], float],
    second: frozenset[int],
) -> float:
    """Seconds of an assignment, given by the nodes with the second choice."""
    own = sum(c.second if node in second else c.first for node, c in nodes.items())
    apart = ((one in second) != (other in second) for one, other in conversions)
    return own + sum(s for s, differs in zip(conversions.values(), apart, strict=True) if differs)


def _add(graph: Any, one: Any, other: Any, seconds: float) -> None:
    """Adds an edge. Infinite seconds are an edge without a capacity."""
    if math.isinf(seconds):
        graph.add_edge(one, other)
        return
    known = graph.get_edge_data(one, other, {"capacity": 0})
    if "capacity" in known:
        capacity = round(seconds / PRECISION.cut_unit_s)
        graph.add_edge(one, other, capacity=known["capacity"] + capacity)
