"""The largest allowed difference between a result and the reference."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import ml_dtypes
import tvm

from ansor.config import MeasureConfig
from ansor.dag.contraction import product_dtypes
from ansor.dag.graph import ComputeDAG
from ansor.measure.result import ErrorKind, Verification
from ansor.targets.backend import Backend
from ansor.task import Task


def judged(
    task: Task, difference: float, config: MeasureConfig, backend: Backend[Any]
) -> Verification:
    """Whether a difference from the reference, relative to its largest value, is an error."""
    rounded = backend.execution.rounded_dtypes(tvm.target.Target(task.target))
    if difference <= tolerance(task.dag, config, rounded):
        return Verification(difference)
    text = f"differs from the reference by {difference:.3g} of the largest value"
    return Verification(difference, ErrorKind.WRONG, text)


def tolerance(
    dag: ComputeDAG, config: MeasureConfig, rounded_dtypes: Collection[str] = ()
) -> float:
    """Largest difference from the reference, relative to its largest value, that is not an error.

    It grows with the longest reduction, because rounding errors accumulate. A result in a short
    dtype may be a neighbouring number, if two almost equal sums are rounded differently. Products
    of `rounded_dtypes` may have rounded operands. The tolerance is zero without floats.
    """
    if not any("float" in buffer.dtype for buffer in dag.buffers.values()):
        return 0.0
    products = {product_dtypes(dag, name) for name in dag.order}
    rounded = any((dtype, dtype) in products for dtype in rounded_dtypes)
    allowed = config.verify_tf32_rtol if rounded else config.verify_rtol
    for stage in dag.stages.values():
        dtype = dag.buffers[stage.output].dtype
        if stage.reduce and "float" in dtype:
            additions = math.prod(stage.axes[axis].size for axis in stage.reduce)
            eps = float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]
            worst, random = additions * eps / 2, math.sqrt(additions) * eps / 2
            allowed = max(allowed, config.verify_rounding * worst, config.verify_walk * random)
        elif "float" in dtype:
            allowed = max(allowed, float(ml_dtypes.finfo(dtype).eps))  # type: ignore[no-untyped-call]
    return allowed
