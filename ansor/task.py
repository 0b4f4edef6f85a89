"""A `Task`: one workload to tune on one target."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

from ansor.dag.graph import ComputeDAG


@dataclass(frozen=True, eq=False)
class Task:
    """One workload to tune.

    `key` is stable over processes, platforms and versions: a hash of our canonical text of the DAG.
    `weight` says how often the model calls it; `target` is the canonical text of the TVM target.
    """

    name: str
    func: tirx.PrimFunc
    dag: ComputeDAG
    target: str
    weight: int = 1

    @property
    def key(self) -> str:
        """Hash of the compute definition, 16 hex digits."""
        return self.dag.key
