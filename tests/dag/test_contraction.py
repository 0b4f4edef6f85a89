"""Products of matrices in disguise: which groups their axes form, and what becomes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from gpu import HALF_PRODUCTS, legal_sample, on_tensor_cores, sketches_of, tensor_product
from tvm import te

from ansor.dag.contraction import Contraction, contraction, operand_names, waste
from ansor.dag.from_tir.read import read_dag
from ansor.dag.stage import Stage
from ansor.lowering.lower import schedule
from ansor.program.steps import AsProduct
from ansor.targets.cuda.machine import gpu_of
from ansor.targets.cuda.rules.tensor_cores import left_to_plain_cores


def product_of(name: str) -> Contraction:
    found = contraction(read_dag(tensor_product(name)), "C")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "stack", "rows", "columns", "depth", "left"),
    [
        ("plain", (), (0,), (1,), (2,), 0),
        ("swapped", (), (0,), (1,), (2,), 1),
        ("stack", (0,), (1,), (2,), (3,), 0),
        ("inside", (1,), (0,), (2,), (3,), 0),
        ("conv", (), (0, 1, 2), (3,), (4, 5, 6), 0),
    ],
)
def test_axes_are_grouped_by_the_operands_that_have_them(
    name: str,
    stack: tuple[int, ...],
    rows: tuple[int, ...],
    columns: tuple[int, ...],
    depth: tuple[int, ...],
    left: int,
) -> None:
    assert product_of(name) == Contraction(stack, rows, columns, depth, left)


def test_padding_by_hand() -> None:
    dag = read_dag(tensor_product("odd"))  # 30 by 41 by 35
    assert waste(dag.stages["C"], product_of("odd"), 16) == 32 * 48 * 48 / (30 * 41 * 35)


DISGUISED = [
    name
    for name in HALF_PRODUCTS
    if any(
        isinstance(step, AsProduct)
        for sketch in sketches_of(tensor_product(name))
        for step in sketch.steps
    )
]


def test_what_lies_in_memory_as_matrices_stays_as_it_is() -> None:
    plain = {"plain", "relu", "narrow", "right", "left", "swapped", "stack", "scaled"}
    assert set(HALF_PRODUCTS) - set(DISGUISED) == plain


@pytest.mark.parametrize("name", DISGUISED)
def test_the_graph_is_that_of_the_rewritten_definition(name: str) -> None:
    func = tensor_product(name)
    (sketch,) = [s for s in sketches_of(func) if on_tensor_cores(s)]
    program = legal_sample(sketch, 1).program(0)
    last = next(i for i, step in enumerate(program.steps) if isinstance(step, AsProduct))
    replay = schedule(func, replace(program, steps=program.steps[: last + 1]))
    expected, found = read_dag(replay.sch.mod["main"]), replay.dag
    assert set(operand_names("C")) < set(found.stages)
    for mine, its in zip(found.stages.values(), expected.stages.values(), strict=True):
        assert shape_of(mine) == shape_of(its)


def shape_of(stage: Stage) -> Any:
    """What matters of a stage, without names."""
    accesses = [access.indices for access in (*stage.reads, *stage.writes)]
    axes = [(axis.extent, axis.reduce) for axis in stage.axes]
    return axes, accesses, stage.ops, stage.has_branch, stage.reducer


@pytest.mark.parametrize(
    ("operand", "total", "arch", "said"),
    [
        ("float32", "float32", "sm_90", []),
        ("float16", "float32", "sm_70", []),
        ("bfloat16", "float32", "sm_80", []),
        ("float16", "float16", "sm_90", ["products of float16 added up in float16"]),
        ("bfloat16", "float32", "sm_75", ["products of bfloat16 added up in float32"]),
        ("float64", "float64", "sm_90", ["products of float64 added up in float64"]),
        ("int8", "int32", "sm_90", ["products of int8 added up in int32"]),
    ],
)
def test_what_is_left_to_plain_cores_is_said(
    operand: str, total: str, arch: str, said: list[str]
) -> None:
    a, b = (te.placeholder((64, 64), operand, name=n) for n in "AB")
    k = te.reduce_axis((0, 64), name="k")

    def product(i: Any, j: Any) -> Any:
        return te.sum(a[i, k].astype(total) * b[k, j].astype(total), axis=k)

    func = te.create_prim_func([a, b, te.compute((64, 64), product, name="C")])
    for tf32 in (False, True):  # which float32 alone is asked about
        found = left_to_plain_cores(read_dag(func), gpu_of(arch, tf32))
        assert [text.partition(" run on")[0] for text in found] == said
        assert all(f"tensor cores of {arch}" in text for text in found)


def test_products_in_float32_are_left_to_plain_cores_where_tf32_was_asked_for() -> None:
    matrix, vector = te.placeholder((64, 64), name="A"), te.placeholder((64,), name="B")
    k = te.reduce_axis((0, 64), name="k")
    total = te.compute((64,), lambda i: te.sum(matrix[i, k] * vector[k], axis=k), name="C")
    dag = read_dag(te.create_prim_func([matrix, vector, total]))
    (said,) = left_to_plain_cores(dag, gpu_of("sm_90", tf32=True))
    assert said.startswith("products of float32 added up in float32 run on plain CUDA cores")
    assert left_to_plain_cores(dag, gpu_of("sm_90")) == []


def test_a_depthwise_convolution_has_no_columns() -> None:
    data = te.placeholder((8, 8, 64), "float16", name="X")
    weight = te.placeholder((3, 3, 64), "float16", name="W")
    dy, dx = (te.reduce_axis((0, 3), name=n) for n in "yx")

    def summed(y: Any, x: Any, c: Any) -> Any:
        read = data[y + dy, x + dx, c].astype("float32")
        return te.sum(read * weight[dy, dx, c].astype("float32"), axis=[dy, dx])

    func = te.create_prim_func([data, weight, te.compute((6, 6, 64), summed, name="C")])
    assert contraction(read_dag(func), "C") is None
