"""The tolerance of a program's difference from the reference."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import te

from ansor.config import MeasureConfig
from ansor.dag.from_tir.read import read_dag
from ansor.measure.tolerance import tolerance

CONFIG = MeasureConfig()


def row_sum(length: int, dtype: str) -> float:
    a = te.placeholder((4, length), dtype=dtype, name="A")
    k = te.reduce_axis((0, length), "k")
    total = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="S")
    return tolerance(read_dag(te.create_prim_func([a, total])), CONFIG)


def test_short_reductions_get_the_plain_tolerance() -> None:
    assert row_sum(512, "float32") == CONFIG.verify_rtol


def test_long_reductions_are_allowed_their_rounding() -> None:
    assert row_sum(1 << 22, "float32") == pytest.approx(0.05 * 2**22 * 2**-24)


def test_half_precision_is_allowed_more() -> None:
    assert row_sum(1 << 14, "float16") == pytest.approx(0.05 * 2**14 * 2**-11)


def test_errors_of_few_additions_walk_at_random() -> None:
    """By hand: 16 additions, half a unit of bfloat16 is 2^-8, twice the root of 16."""
    assert row_sum(16, "bfloat16") == pytest.approx(2 * 4 * 2**-8)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
def test_integers_are_exact(dtype: str) -> None:
    assert row_sum(1 << 22, dtype) == 0.0


def test_integers_made_of_floats_are_not() -> None:
    a = te.placeholder((64,), dtype="float32", name="A")
    rounded = te.compute((64,), lambda i: te.round(a[i] * 100.0).astype("int32"), name="R")
    assert tolerance(read_dag(te.create_prim_func([a, rounded])), CONFIG) == CONFIG.verify_rtol


@pytest.mark.parametrize(
    ("dtype", "rounded", "allowed"),
    [
        ("float32", ("float32",), CONFIG.verify_tf32_rtol),
        ("float32", (), CONFIG.verify_rtol),
        ("float16", ("float32",), CONFIG.verify_rtol),
    ],
)
def test_operands_rounded_to_tf32_are_allowed_more(
    dtype: str, rounded: tuple[str, ...], allowed: float
) -> None:
    a, b = (te.placeholder((64, 64), dtype, name=n) for n in "AB")
    k = te.reduce_axis((0, 64), "k")

    def product(i: Any, j: Any) -> Any:
        return te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k)

    func = te.create_prim_func([a, b, te.compute((64, 64), product, name="C")])
    assert tolerance(read_dag(func), CONFIG, rounded) == allowed
