"""Long reductions with little around them."""

from __future__ import annotations

import numpy as np
from tvm import te

from ansor.workloads.workload import Array, Workload


def row_sum(rows: int = 8, columns: int = 65536) -> Workload:
    """``S[i] = sum of A[i]``, A `[rows, columns]`."""
    a = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    out = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="S")
    return Workload("row_sum", (a, out), _row_sum)


def total_sum(size: int = 65536) -> Workload:
    """``S[0] = sum of A``, A `[size]`."""
    a = te.placeholder((size,), name="A")
    k = te.reduce_axis((0, size), name="k")
    out = te.compute((1,), lambda i: te.sum(a[k], axis=k), name="S")
    return Workload("total_sum", (a, out), _total_sum)


def norm(batch: int = 1, rows: int = 256, columns: int = 256) -> Workload:
    """Frobenius norm of each matrix of A `[batch, rows, columns]`."""
    a = te.placeholder((batch, rows, columns), name="A")
    i, j = te.reduce_axis((0, rows), name="i"), te.reduce_axis((0, columns), name="j")
    square = te.compute((batch,), lambda n: te.sum(a[n, i, j] * a[n, i, j], axis=[i, j]), name="S")
    out = te.compute((batch,), lambda n: te.sqrt(square[n]), name="norm")
    return Workload("norm", (a, out), _norm)


def _norm(a: Array) -> Array:
    out: Array = np.sqrt(np.square(a).sum(axis=(1, 2)))
    return out


def _row_sum(a: Array) -> Array:
    out: Array = a.sum(axis=1)
    return out


def _total_sum(a: Array) -> Array:
    out: Array = a.sum(keepdims=True)
    return out
