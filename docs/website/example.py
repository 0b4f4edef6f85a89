"""The definition and the machine of all pictures: a product of matrices and its maximum with 0."""

from __future__ import annotations

from ansor.dag.from_tir.read import read_dag
from ansor.dag.graph import ComputeDAG
from ansor.targets.cpu.machine import Hardware
from ansor.workloads import Workload, build

MACHINE = Hardware()  # two cores, AVX-512, caches of 48 KiB, 1 MiB and 32 MiB


def workload() -> Workload:
    """The operator."""
    return build("matmul", rows=512, columns=512, depth=512, relu=1)


def example() -> ComputeDAG:
    """Its graph of stages."""
    return read_dag(workload().func)
