"""Products and convolutions in float16, added up in float32, of the suite's sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from tvm import te

from ansor.errors import ArgumentError
from ansor.workloads import Workload
from ansor.workloads.convolution_nd import convolution
from ansor.workloads.suite import sizes_of
from ansor.workloads.workload import Array

_PRODUCTS = ("GMM", "matmul")


def half_workload(op: str, workload: Workload, batch: int = 1) -> Workload:
    """The same product or convolution of operands in float16.

    Raises:
        ArgumentError: another operator.
    """
    sizes = sizes_of(op, batch)
    if sizes is not None:
        return convolution(f"{op}.float16", replace(sizes, dtype="float16"))
    if op.partition(".")[0].partition(":")[0] in _PRODUCTS:
        return _product(workload)
    known = "C1D, C2D, C3D, GMM and matmul"
    raise ArgumentError("dtypes", "float16", f"{op} is none of {known}")


def _product(workload: Workload) -> Workload:
    shapes = [[int(n) for n in tensor.shape] for tensor in workload.tensors]
    a, b = (te.placeholder(s, "float16", name=n) for s, n in zip(shapes[:2], "AB", strict=True))
    k = te.reduce_axis((0, shapes[0][-1]), name="k")

    def product(*index: Any) -> Any:
        *stack, i, j = index
        left, right = (*stack, i, k), (*stack, k, j)
        return te.sum(a[left].astype("float32") * b[right].astype("float32"), axis=k)

    c = te.compute(shapes[2], product, name="C")
    return Workload(f"{workload.name}.float16", (a, b, c), _multiplied)


def half_inputs(workload: Workload, rng: np.random.Generator) -> list[Array]:
    """Operands between -1 and 1."""
    shapes: Sequence[Any] = [tensor.shape for tensor in workload.tensors[:2]]
    drawn = [rng.uniform(-1, 1, [int(n) for n in shape]) for shape in shapes]
    return [array.astype(np.float16) for array in drawn]


def _multiplied(a: Array, b: Array) -> Array:
    product: Array = np.matmul(a.astype(np.float32), b.astype(np.float32))
    return product
