"""Products of matrices in float16, added up in float32, of the sizes of the suite's in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import te

from ansor.errors import ArgumentError
from ansor.workloads import Workload
from ansor.workloads.workload import Array

PRODUCTS = ("GMM", "matmul")


def half_product(op: str, workload: Workload) -> Workload:
    """The same product of operands in float16.

    Raises:
        ArgumentError: another operator.
    """
    if op.partition(".")[0].partition(":")[0] not in PRODUCTS:
        known = ", ".join(PRODUCTS)
        raise ArgumentError("dtypes", "float16", f"{op} is no operator of {known}")
    shapes = [[int(n) for n in tensor.shape] for tensor in workload.tensors]
    a, b = (te.placeholder(s, "float16", name=n) for s, n in zip(shapes[:2], "AB", strict=True))
    k = te.reduce_axis((0, shapes[0][-1]), name="k")

    def product(*index: Any) -> Any:
        *stack, i, j = index
        left, right = (*stack, i, k), (*stack, k, j)
        return te.sum(a[left].astype("float32") * b[right].astype("float32"), axis=k)

    c = te.compute(shapes[2], product, name="C")
    return Workload(f"{workload.name}.float16", (a, b, c), _reference)


def half_inputs(workload: Workload, rng: np.random.Generator) -> list[Array]:
    """Operands between -1 and 1."""
    shapes: Sequence[Any] = [tensor.shape for tensor in workload.tensors[:2]]
    drawn = [rng.uniform(-1, 1, [int(n) for n in shape]) for shape in shapes]
    return [array.astype(np.float16) for array in drawn]


def _reference(a: Array, b: Array) -> Array:
    product: Array = np.matmul(a.astype(np.float32), b.astype(np.float32))
    return product
