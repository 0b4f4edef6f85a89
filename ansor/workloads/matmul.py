"""Matrix products."""

from __future__ import annotations

import numpy as np
from tvm import te, topi

from ansor.workloads.precision import precision
from ansor.workloads.workload import Array, Workload


def matmul(
    rows: int = 128, columns: int = 128, depth: int = 128, relu: int = 0, *, dtype: str = "float32"
) -> Workload:
    """``C = A @ B``, A `[rows, depth]`, B `[depth, columns]`; then max(C, 0) if `relu`."""
    own = precision(dtype)
    a = te.placeholder((rows, depth), own.data, name="A")
    b = te.placeholder((depth, columns), own.weight, name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute(
        (rows, columns), lambda i, j: te.sum(own.multiply(a[i, k], b[k, j]), axis=k), name="C"
    )
    if not relu:
        return own.workload("matmul", (a, b, c), _product)
    return own.workload("matmul", (a, b, topi.nn.relu(c)), _matmul_relu)


def _product(x: Array, y: Array) -> Array:
    out: Array = x @ y
    return out


def _matmul_relu(x: Array, y: Array) -> Array:
    return np.maximum(_product(x, y), 0)


def dense(
    rows: int = 128, columns: int = 128, depth: int = 128, *, dtype: str = "float32"
) -> Workload:
    """``C = A @ B.T``, A `[rows, depth]`, B `[columns, depth]`: a layer's weights as they come."""
    own = precision(dtype)
    a = te.placeholder((rows, depth), own.data, name="A")
    b = te.placeholder((columns, depth), own.weight, name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute(
        (rows, columns), lambda i, j: te.sum(own.multiply(a[i, k], b[j, k]), axis=k), name="C"
    )
    return own.workload("dense", (a, b, c), _product_transposed)


def _product_transposed(x: Array, y: Array) -> Array:
    return _product(x, y.T)


def batch_matmul(
    batch: int = 8, rows: int = 64, columns: int = 64, depth: int = 64, *, dtype: str = "float32"
) -> Workload:
    """``C[b] = A[b] @ B[b]``, A `[batch, rows, depth]`, B `[batch, depth, columns]`."""
    own = precision(dtype)
    a = te.placeholder((batch, rows, depth), own.data, name="A")
    b = te.placeholder((batch, depth, columns), own.weight, name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute(
        (batch, rows, columns),
        lambda n, i, j: te.sum(own.multiply(a[n, i, k], b[n, k, j]), axis=k),
        name="C",
    )
    return own.workload("batch_matmul", (a, b, c), _product)
