"""Rejects times that the machine cannot reach.

A clock that jumps, a device in other units, or a kernel that did not run gives a time that is too
short. Such a program would win. Its measurement becomes a failure instead, see
`ansor.measure.result.checked`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansor.config import MeasureConfig
from ansor.dag.graph import ComputeDAG
from ansor.dag.least_work import LeastWork, least_work
from ansor.targets.machine import Machine


@dataclass(frozen=True)
class PeakTimes:
    """Seconds of a definition at the peaks of a machine; 0 where there is no such work.

    Attributes:
        compute_s: of the sums of products, at the peak of the arithmetic.
        memory_s: of the inputs and the outputs, at the bandwidth of the memory. A program whose
            tensors are in caches may take less.
    """

    compute_s: float = 0.0
    memory_s: float = 0.0


def peak_times(dag: ComputeDAG, machine: Machine) -> PeakTimes:
    """The roofline of a definition: its two bounds on the time.

    See Williams et al., "Roofline", CACM 52(4), 2009.
    """
    work = least_work(dag)
    return PeakTimes(_computing_s(work, machine), work.bytes / machine.memory_bandwidth)


def _computing_s(work: LeastWork, machine: Machine) -> float:
    return sum(n / machine.product_flops(size) for size, n in work.products.items())


def least_seconds(dag: ComputeDAG, machine: Machine, config: MeasureConfig) -> float:
    """Seconds that no run of a definition can fall below on a machine.

    They follow from the products and the bytes that no program can avoid, at the peaks of the
    machine times the margins of `config`. Zero for a definition without such work.
    """
    work = least_work(dag)
    moving = work.bytes / machine.peak_bytes
    return max(_computing_s(work, machine) / config.peak_margin, moving / config.byte_margin)
