"""Arrays of bfloat16 in compiled functions: 16 bits in memory, rounded to nearest."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, tirx

from ansor.targets.build import compile_function
from ansor.targets.target import resolve_target, target_text

NATIVE = target_text(resolve_target("native"), 1)
PLAIN = '{"kind": "llvm", "mcpu": "x86-64-v2"}'  # no instruction rounds
TARGETS = pytest.mark.parametrize("target", [NATIVE, PLAIN], ids=["native", "plain"])
SIZE = 24


def run(func: tirx.PrimFunc, target: str, x: np.ndarray, dtype: object) -> np.ndarray:
    out = tvm.runtime.tensor(np.zeros(x.shape, dtype))
    compile_function(func, target)(tvm.runtime.tensor(x), out)
    return out.numpy()


def rounding() -> tirx.PrimFunc:
    x = te.placeholder((SIZE,), "float32", "x")
    return te.create_prim_func([x, te.compute((SIZE,), lambda i: x[i].astype("bfloat16"))])


@TARGETS
@settings(max_examples=20, deadline=None)
@given(
    values=st.lists(st.floats(width=32, allow_subnormal=False), min_size=SIZE, max_size=SIZE).map(
        lambda found: np.asarray(found, dtype=np.float32)
    )
)
def test_rounding_is_to_nearest_and_ties_to_even(target: str, values: np.ndarray) -> None:
    found = run(rounding(), target, values, ml_dtypes.bfloat16)
    expected = values.astype(ml_dtypes.bfloat16)
    small = (
        np.abs(values) < np.finfo(np.float32).tiny * 2
    )  # the instruction flushes results to zero
    same = found.view(np.uint16) == expected.view(np.uint16)
    nan = np.isnan(values) & np.isnan(found.astype(np.float32))
    assert (same | nan | small).all()


@TARGETS
def test_an_array_between_two_stages_keeps_its_bits(target: str) -> None:
    x = te.placeholder((SIZE,), "bfloat16", "x")
    copy = te.compute((SIZE,), lambda i: x[SIZE - 1 - i], name="copy")
    out = te.compute((SIZE,), lambda i: copy[i].astype("float32") * 2.0 + 1.0, name="out")
    values = np.random.default_rng(0).standard_normal(SIZE).astype(ml_dtypes.bfloat16)
    found = run(te.create_prim_func([x, out]), target, values, np.float32)
    assert np.array_equal(found, values[::-1].astype(np.float32) * 2 + 1)


@TARGETS
def test_a_bound_value_is_a_number(target: str) -> None:
    x = te.placeholder((SIZE,), "bfloat16", "x")

    def square(i: object) -> object:
        number = tirx.Var("number", "float32")
        return tirx.Let(number, x[i].astype("float32"), number * number + number)

    values = np.arange(SIZE).astype(ml_dtypes.bfloat16)
    found = run(te.create_prim_func([x, te.compute((SIZE,), square)]), target, values, np.float32)
    wide = values.astype(np.float32)
    assert np.array_equal(found, wide * wide + wide)


@TARGETS
def test_padding_and_arithmetic_of_short_numbers(target: str) -> None:
    x = te.placeholder((SIZE,), "bfloat16", "x")
    padded = te.compute(
        (SIZE,), lambda i: tirx.if_then_else(i < 4, tirx.const(1.5, "bfloat16"), x[i]), name="pad"
    )
    out = te.compute((SIZE,), lambda i: te.max(padded[i], tirx.const(0.0, "bfloat16")), name="out")
    values = np.random.default_rng(1).standard_normal(SIZE).astype(ml_dtypes.bfloat16)
    found = run(te.create_prim_func([x, out]), target, values, ml_dtypes.bfloat16)
    expected = np.maximum(np.where(np.arange(SIZE) < 4, 1.5, values.astype(np.float32)), 0)
    assert np.array_equal(found.astype(np.float32), expected)
