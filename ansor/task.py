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
        constants: positions of the parameters that are weights, known when the network is
            compiled: a program may ask for them in another layout.
        cold_bytes: weights of the whole network. In it, all of them pass through the caches
            between two runs of a function, and so they do when programs are timed.
    """

    name: str
    func: tirx.PrimFunc
    dag: ComputeDAG
    target: str
    weight: int = 1
    constants: tuple[int, ...] = ()
    cold_bytes: int = 0

    @property
    def key(self) -> str:
        """Stable over processes, platforms and versions: a hash of the compute definition, and
        which of its parameters are constant."""
        positions = ".".join(map(str, self.constants))
        return f"{self.dag.key}-{positions}" if positions else self.dag.key
