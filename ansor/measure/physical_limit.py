"""Times that no machine can reach are no times.

A clock that jumps, a device in other units, or a kernel that did not run gives a time that is too
short. Such a program would win. Its measurement becomes a failure instead, see
`ansor.measure.result.checked`.
"""

from __future__ import annotations

from ansor.config import MeasureConfig
from ansor.dag.graph import ComputeDAG
from ansor.dag.least_work import least_work
from ansor.targets.machine import Machine


def least_seconds(dag: ComputeDAG, machine: Machine, config: MeasureConfig) -> float:
    """Seconds that no run of a definition can fall below on a machine.

    They follow from the products and the bytes that no program can avoid, at the peaks of the
    machine times the margins of `config`. Zero for a definition without such work.
    """
    work = least_work(dag)
    computing = sum(n / machine.product_flops(size) for size, n in work.products.items())
    moving = work.bytes / machine.peak_bytes
    return max(computing / config.peak_margin, moving / config.byte_margin)
