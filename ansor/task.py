"""A `Task`: one workload to tune on one target."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

from ansor.dag.graph import ComputeDAG


@dataclass(frozen=True, eq=False)
class Task:
    """One workload to tune.

    Attributes:
        name: function of the network.
        func: the compute definition.
        dag: the same as a graph.
        target: canonical text of the TVM target.
        weight: how often the model calls it.
        cold_bytes: weights of the whole network. In it, all of them pass through the caches
            between two runs of a function, and so they do when programs are timed.
    """

    name: str
    func: tirx.PrimFunc
    dag: ComputeDAG
    target: str
    weight: int = 1
    cold_bytes: int = 0

    @property
    def key(self) -> str:
        """Hash of the compute definition, stable over processes, platforms and versions."""
        return self.dag.key

    @property
    def constants(self) -> tuple[int, ...]:
        """Positions of the parameters that are weights, known when the network is compiled."""
        buffers = self.dag.buffers.values()  # parameters come first, in order
        return tuple(i for i, buffer in enumerate(buffers) if buffer.constant)
