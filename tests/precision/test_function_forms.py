"""Functions in other forms compute what NumPy computes with the same rounding."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, tirx

from ansor.dag.from_tir.read import read_dag
from ansor.frontend.precision.conversion import narrowed
from ansor.frontend.precision.function_form import FunctionForm, in_form
from ansor.frontend.precision.stages import products_of

SHORT, WIDE = "bfloat16", "float32"


def rounded(array: Any) -> Any:
    """The values in bfloat16, as float32."""
    return array.astype(ml_dtypes.bfloat16).astype(np.float32)


def drawn(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(func: tirx.PrimFunc, *inputs: Any) -> Any:
    """The last parameter after a call, as float32."""
    compiled = tvm.compile(func.with_attr("global_symbol", "main"), target="llvm")
    pairs = zip(inputs, func.params, strict=False)
    tensors = [tvm.runtime.tensor(a.astype(np.dtype(str(p.dtype)))) for a, p in pairs]
    shape = [int(size) for size in func.params[-1].shape]
    out = tvm.runtime.tensor(np.zeros(shape, np.dtype(str(func.params[-1].dtype))))
    compiled["main"](*tensors, out)
    return out.numpy().astype(np.float32)


def product(epilogue: bool) -> tirx.PrimFunc:
    """Rows by columns, with a maximum after it if wanted."""
    a, b = te.placeholder((5, 7), name="a"), te.placeholder((7, 3), name="b")
    k = te.reduce_axis((0, 7), name="k")
    c = te.compute((5, 3), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    last = te.compute((5, 3), lambda i, j: te.max(c[i, j], tirx.const(0.1, WIDE)), name="d")
    return te.create_prim_func([a, b, last if epilogue else c])


@pytest.mark.parametrize("epilogue", [False, True])
@pytest.mark.parametrize("result", [WIDE, SHORT])
@pytest.mark.parametrize("operand", [WIDE, SHORT])
def test_a_product_multiplies_rounded_operands(operand: str, result: str, epilogue: bool) -> None:
    form = FunctionForm((operand, SHORT, result), SHORT)
    func = in_form(product(epilogue), form)
    a, b = drawn(0, 5, 7), drawn(1, 7, 3)
    expected = rounded(a) @ rounded(b)
    if epilogue:
        expected = np.maximum(expected, np.float32(0.1))
    # TVM may keep the values of an inner buffer in float32: a conversion within is an upper bound.
    inner = 2**-8 * (np.abs(a) @ np.abs(b)) if operand == WIDE else 1e-6
    outer = 2**-8 * np.abs(expected) if result == SHORT else 0
    assert np.all(np.abs(run(func, a, b) - expected) <= inner + outer)
    assert tuple(str(p.dtype) for p in func.params) == form.dtypes


def test_operands_of_a_short_product_are_short() -> None:
    dag = read_dag(in_form(product(True), FunctionForm((WIDE, SHORT, SHORT), SHORT)))
    reads = [dag.buffers[read.buffer].dtype for read in dag.stages["c"].reads]
    assert reads == [SHORT, SHORT]
    assert dag.buffers["c"].dtype == WIDE


def test_without_short_operands_only_the_storage_changes() -> None:
    func = in_form(product(True), FunctionForm((SHORT, WIDE, SHORT)))
    a, b = drawn(2, 5, 7), drawn(3, 7, 3)
    expected = np.maximum(rounded(a) @ b, np.float32(0.1))
    np.testing.assert_allclose(run(func, a, b), expected, rtol=2**-7)
    assert len(read_dag(func).stages) == len(read_dag(product(True)).stages)


def padded_convolution() -> tirx.PrimFunc:
    """Along a line, with a padding of one, and the products of two neighbours."""
    x, w = te.placeholder((8, 4), name="x"), te.placeholder((3, 4, 6), name="w")
    zero = tirx.const(0, WIDE)
    pad = te.compute(
        (10, 4),
        lambda i, c: tirx.if_then_else(tirx.all(i >= 1, i < 9), x[i - 1, c], zero),
        name="pad",
    )
    r, c = te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 4), name="c")
    y = te.compute((8, 6), lambda i, f: te.sum(pad[i + r, c] * w[r, c, f], axis=[r, c]), name="y")
    return te.create_prim_func([x, w, y])


def test_a_padding_of_short_values_is_a_copy() -> None:
    func = in_form(padded_convolution(), FunctionForm((SHORT, SHORT, WIDE), SHORT))
    dag = read_dag(func)
    assert dag.buffers["pad"].dtype == SHORT
    assert "Cast" not in str(func).split('T.sblock("y")')[0]
    x, w = drawn(4, 8, 4), drawn(5, 3, 4, 6)
    wide = np.pad(rounded(x), ((1, 1), (0, 0)))
    expected = sum(wide[r : r + 8] @ rounded(w)[r] for r in range(3))
    np.testing.assert_allclose(run(func, x, w), expected, rtol=1e-5, atol=1e-6)


def test_a_maximum_over_a_window_is_stored_short() -> None:
    """A reduction adds up, or compares, in float32; a further stage stores it."""
    x = te.placeholder((6, 4), name="x")
    k = te.reduce_axis((0, 4), name="k")
    most = te.compute((6,), lambda i: te.max(x[i, k], axis=k), name="most")
    func = in_form(te.create_prim_func([x, most]), FunctionForm((SHORT, SHORT)))
    array = drawn(6, 6, 4)
    np.testing.assert_array_equal(run(func, array), rounded(array).max(axis=1))
    assert [stage.reducer for stage in read_dag(func).stages.values()] == ["Max", None]


def test_depthwise_convolutions_are_no_products() -> None:
    x, w = te.placeholder((9, 4), name="x"), te.placeholder((2, 4), name="w")
    r = te.reduce_axis((0, 2), name="r")
    y = te.compute((8, 4), lambda i, c: te.sum(x[i + r, c] * w[r, c], axis=r), name="y")
    assert products_of(read_dag(te.create_prim_func([x, w, y]))) == {}


@settings(max_examples=50, deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_number_is_narrowed_only_where_it_stays_the_same(value: float) -> None:
    found = narrowed(tirx.const(value, WIDE), SHORT)
    with np.errstate(over="ignore"):
        fits = float(ml_dtypes.bfloat16(value)) == value
    assert isinstance(found, tirx.FloatImm) == fits
    assert str(found.ty.dtype) == SHORT
