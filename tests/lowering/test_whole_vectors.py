"""Vectorised loops cut to registers: every element once, no vector longer than a register."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st
from tvm import tirx
from tvm.s_tir import Schedule

from ansor.lowering.passes.whole_vectors import whole_vectors
from ansor.lowering.statements import collect
from ansor.targets.build import compile_function
from ansor.targets.target import resolve_target, target_text

ROWS = 3
AVX512 = 64  # bytes


def product(extent: int, dtype: str, kind: str = "vectorize") -> tirx.PrimFunc:
    """``C[i, j] = sum_k A[i, k] * B[k, j]`` with vectors along j, for `extent` elements of it."""
    a = tvm.te.placeholder((ROWS, 5), dtype, name="A")
    b = tvm.te.placeholder((5, extent), dtype, name="B")
    k = tvm.te.reduce_axis((0, 5), name="k")
    c = tvm.te.compute((ROWS, extent), lambda i, j: tvm.te.sum(a[i, k] * b[k, j], axis=k), name="C")
    sch: Any = Schedule(tvm.te.create_prim_func([a, b, c]))
    block = sch.get_sblock("C")
    row, column, depth = sch.get_loops(block)
    sch.reorder(row, depth, column)
    getattr(sch, kind)(column)
    return sch.mod["main"]


def cut(func: tirx.PrimFunc, vector_bytes: int) -> tirx.PrimFunc:
    return whole_vectors(tvm.IRModule({"main": func}), vector_bytes)["main"]


def vectors(func: tirx.PrimFunc) -> list[tuple[int, int]]:
    """Numbers of consecutive vectors, and their elements."""
    loops = collect(func.body, tirx.For)
    inner = [x for x in loops if x.kind == tirx.ForKind.VECTORIZED]
    around = [x for x in loops if x.kind == tirx.ForKind.UNROLLED]
    counts = [next((int(o.extent) for o in around if o.body.same_as(x)), 1) for x in inner]
    return [(count, int(x.extent)) for count, x in zip(counts, inner, strict=True)]


@pytest.mark.parametrize(
    ("extent", "dtype", "expected"),
    [
        (48, "float32", [(3, 16)]),
        (49, "float32", [(3, 16), (1, 1)]),
        (24, "float32", [(1, 16), (1, 8)]),
        (28, "float64", [(3, 8), (1, 4)]),
        (48, "int8", [(1, 48)]),  # of 64 in a register
        (14, "float32", [(1, 14)]),
        (64, "float32", [(1, 64)]),  # which LLVM halves twice
    ],
)
def test_longer_vectors_become_registers_and_a_rest(
    extent: int, dtype: str, expected: list[tuple[int, int]]
) -> None:
    assert vectors(cut(product(extent, dtype), AVX512)) == expected


@pytest.mark.parametrize("kind", ["unroll", "parallel"])
def test_other_loops_stay(kind: str) -> None:
    func = product(48, "float32", kind)
    tvm.ir.assert_structural_equal(cut(func, AVX512), func)


@given(extent=st.integers(1, 70), lanes=st.sampled_from([1, 2, 4, 8, 16]))
def test_every_element_is_in_one_vector(extent: int, lanes: int) -> None:
    found = vectors(cut(product(extent, "float32"), 4 * lanes))
    assert sum(count * size for count, size in found) == extent
    is_power_of_two = extent & (extent - 1) == 0
    assert is_power_of_two or all(size <= lanes for _, size in found)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8"])
@pytest.mark.parametrize("extent", [7, 17, 24, 48, 49, 64, 70, 100])
def test_what_is_built_computes_the_product(extent: int, dtype: str) -> None:
    func = product(extent, dtype)
    rng = np.random.default_rng(0)
    x, y = rng.integers(-4, 5, (ROWS, 5)).astype(dtype), rng.integers(-4, 5, (5, extent))
    out = tvm.runtime.tensor(np.zeros((ROWS, extent), dtype=dtype))
    module = compile_function(func, target_text(resolve_target("native"), 1))
    module["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(y.astype(dtype)), out)
    np.testing.assert_array_equal(out.numpy(), (x @ y).astype(dtype))
