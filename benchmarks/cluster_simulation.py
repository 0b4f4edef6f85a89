"""Large clusters in simulated seconds: `NodePool` with simulated nodes and a simulated driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ansor.cluster.job import Job
from ansor.cluster.node_pool import NodePool
from ansor.cluster.nodes import Assignment
from ansor.config import MeasureConfig
from benchmarks.simulated_nodes import SimulatedNode, SimulatedNodes, report_of


@dataclass(frozen=True)
class Load:
    """The results of a simulated run.

    Attributes:
        functions: that are searched; each has one round under way at a time.
        batch: programs of a round.
        propose_s: seconds in which the driver proposes and learns from a round, one after the
            other.
        round_s: seconds of rounds on a node, drawn at random.
    """

    functions: int
    batch: int
    propose_s: float
    round_s: Sequence[float]

    def limit(self, nodes: int) -> str:
        """What bounds the programs per second."""
        mean_s = float(np.mean(self.round_s))
        busy = {
            "nodes": float(nodes),
            "functions": float(self.functions),
            "driver": mean_s / self.propose_s if self.propose_s else float("inf"),
        }
        return min(busy, key=lambda name: busy[name])


@dataclass(frozen=True)
class Simulated:
    """The result: programs per second, and the share of the time in which nodes measure."""

    programs_per_s: float
    busy: float


def simulate(nodes: int, load: Load, seconds: float, seed: int = 0) -> Simulated:
    """Runs a search on simulated nodes for a number of simulated seconds."""
    rng = np.random.default_rng(seed)

    def work(method: str, arguments: tuple[Any, ...]) -> tuple[Any, float]:
        return None, float(rng.choice(load.round_s))

    cluster = SimulatedNodes(work)
    for number in range(nodes):
        cluster.add(f"node{number}", SimulatedNode(report_of(f"node{number}")))
    given = Assignment("simulated", 1, MeasureConfig())
    pool = NodePool(cluster, given, report_of(""))
    pool.wait_for_nodes()
    began_s, under_way, done = cluster.now(), 0, 0
    while cluster.now() - began_s < seconds:
        while under_way < min(load.functions, pool.size):
            cluster.pass_time(load.propose_s)
            pool.submit(Job("measure", (), (), max(load.round_s), str))
            under_way += 1
        pool.wait()
        under_way, done = under_way - 1, done + 1
    taken_s = cluster.now() - began_s
    busy_s = sum(node.busy_s for node in cluster.present.values())
    return Simulated(done * load.batch / taken_s, busy_s / (taken_s * nodes))
