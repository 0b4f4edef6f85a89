"""A cluster whose nodes are objects of this process."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from typing import Any

from ansor.cluster.device import ClusterDevice
from ansor.cluster.measurer import DeviceFactory, Measurer, package_versions
from ansor.cluster.node_pool import NodePool
from ansor.cluster.nodes import Assignment, NodeReport
from ansor.config import MeasureConfig


class NodesHere:
    """Answers at once; whatever travels is pickled. See `Nodes`."""

    def __init__(self, count: int, assignment: Assignment, make_device: DeviceFactory) -> None:
        self.measurers = {f"n{i}": Measurer(assignment, make_device) for i in range(count)}
        self.answers: dict[int, Any] = {}
        self.calls = 0

    def names(self) -> Sequence[str]:
        return list(self.measurers)

    def open(self, node: str) -> None:
        pass

    def call(self, node: str, method: str, *arguments: Any) -> object:
        sent = pickle.loads(pickle.dumps(arguments))
        answer = getattr(self.measurers[node], method)(*sent)
        self.calls += 1
        self.answers[self.calls] = pickle.loads(pickle.dumps(answer))
        return self.calls

    def wait(self, tickets: Sequence[object], seconds: float) -> Sequence[object]:
        return tickets

    def result(self, ticket: object) -> Any:
        return self.answers.pop(ticket)  # type: ignore[call-overload]

    def drop(self, node: str) -> None:
        self.measurers.pop(node, None)

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        pass


def cluster_here(count: int, make_device: DeviceFactory) -> ClusterDevice:
    """A device on a number of nodes, all of them this machine."""
    given = Assignment("llvm", 1, MeasureConfig())
    nodes = NodesHere(count, given, make_device)
    report = nodes.measurers["n0"].describe()
    pool = NodePool(nodes, given, NodeReport("", report.fingerprint, package_versions()))
    pool.wait_for_nodes()
    return ClusterDevice(pool, given.measure)
