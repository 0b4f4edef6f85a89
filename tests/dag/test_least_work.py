"""The work that no program of a definition can avoid, against numbers found by hand."""

from __future__ import annotations

import pytest
from definitions import LOW_PRECISION, NAMES, dag
from tvm import te

from ansor.dag.from_tir.read import read_dag
from ansor.dag.graph import ComputeDAG
from ansor.dag.least_work import LeastWork, least_work


def work_of(*tensors: te.Tensor) -> LeastWork:
    return least_work(read_dag(te.create_prim_func(list(tensors))))


def product(rows: int, columns: int, depth: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    a, b = te.placeholder((rows, depth), name="A"), te.placeholder((depth, columns), name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return a, b, c


def test_a_product_reads_and_multiplies_everything() -> None:
    work = work_of(*product(8, 16, 32))
    assert work.products == {4: 2 * 8 * 16 * 32}
    assert work.bytes == 4 * (8 * 32 + 32 * 16 + 8 * 16)


def test_what_is_cut_off_need_not_be_computed() -> None:
    a, b, c = product(8, 16, 32)
    head = te.compute((2, 16), lambda i, j: c[i, j] + 1.0, name="head")
    assert work_of(a, b, head) == LeastWork({}, 4 * 2 * 16)
    whole = te.compute((8, 16), lambda i, j: c[i, j] + 1.0, name="whole")
    assert work_of(a, b, whole).products == {4: 2 * 8 * 16 * 32}


def test_steps_on_padding_do_not_count() -> None:
    """Of three positions of the kernel, four outputs meet zeros twice: ten of twelve steps."""
    x = te.placeholder((4,), name="x")
    w = te.placeholder((3,), name="w")
    padded = te.compute(
        (6,), lambda i: te.if_then_else(te.all(i >= 1, i < 5), x[i - 1], 0.0), name="padded"
    )
    k = te.reduce_axis((0, 3), name="k")
    y = te.compute((4,), lambda i: te.sum(padded[i + k] * w[k], axis=k), name="y")
    assert work_of(x, w, y).products == {4: 2 * 10}


def test_a_map_only_moves_bytes() -> None:
    x = te.placeholder((8, 8), name="x")
    assert work_of(x, te.compute((8, 8), lambda i, j: te.exp(x[i, j]))) == LeastWork({}, 512)
    turned = te.compute((8, 4), lambda i, j: x[i, 2 * j])
    assert work_of(x, turned) == LeastWork({}, 128), "half of the input is not read"


@pytest.mark.parametrize("name", LOW_PRECISION)
def test_short_operands_count_by_their_size(name: str) -> None:
    (size,) = least_work(dag(name)).products
    assert size == (2 if "bfloat16" in name else 1)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_never_more_than_the_definition_has(name: str) -> None:
    found: ComputeDAG = dag(name)
    work = least_work(found)
    assert 0 <= sum(work.products.values()) <= found.flops
    assert 0 < work.bytes <= found.num_bytes
