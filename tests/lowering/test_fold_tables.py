"""Tables of constants are folded into sums: the same results, bit for bit, with less code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import ir, s_tir, te, tirx
from tvm.s_tir import SBlockRealize
from tvm_ffi import structural_map

from ansor.lowering.passes.fold_tables import fold_tables
from ansor.lowering.pipeline import CPU_PIPELINE
from ansor.lowering.statements import collect
from ansor.targets.build import PASS_CONFIG
from ansor.workloads.minimal_filtering.transformed_weights import constant_matrix_stage

Matrix = list[list[float]]
LANES = 8
ENTRIES = st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.3, -5.25])
TABLES = st.integers(1, 6).flatmap(
    lambda columns: st.lists(
        st.lists(ENTRIES, min_size=columns, max_size=columns), min_size=1, max_size=6
    )
)


def transformed(
    values: Matrix,
    operand: Callable[..., Any] = lambda x, row, k, c: x[k, c],
    unrolled: int = 2,
) -> tirx.PrimFunc:
    """``out[row, c] = sum over k of values[row, k] * x[k, c]``, the first loops unrolled."""
    rows, columns = len(values), len(values[0])
    x = te.placeholder((max(rows, columns), LANES), name="x")
    constants = constant_matrix_stage(values, "constants", "float32")
    k = te.reduce_axis((0, columns), "k")
    out = te.compute(
        (rows, LANES),
        lambda row, c: te.sum(constants[row, k] * operand(x, row, k, c), axis=k),
        name="out",
    )
    sch = s_tir.Schedule(te.create_prim_func([x, out]))
    sch.compute_inline(sch.get_sblock("constants"))
    block = sch.get_sblock("out")
    row, lane, column = sch.get_loops(block)
    sch.reorder(column, row, lane)
    for loop in (column, row)[:unrolled]:
        sch.unroll(loop)
    sch.vectorize(lane)
    sch.decompose_reduction(block, column)
    return sch.mod["main"].with_attr("global_symbol", "main")


def opaque(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function as the pipeline has it then."""
    passes = [
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
        s_tir.transform.ConvertBlocksToOpaque(),
    ]
    return tvm.transform.Sequential(passes)(tvm.IRModule({"main": func}))["main"]


def result(func: tirx.PrimFunc, pipeline: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with tvm.transform.PassContext(opt_level=3, config=PASS_CONFIG):
        built = tvm.compile(tvm.IRModule({"main": func}), "llvm", tir_pipeline=pipeline).mod
    shape = [int(size) for size in func.params[-1].shape]
    out = tvm.runtime.tensor(np.full(shape, np.nan, dtype=np.float32))
    built["main"](tvm.runtime.tensor(x), out)
    return out.numpy()


@settings(max_examples=20, deadline=None)
@given(TABLES, st.integers(0, 99))
def test_results_are_the_same_to_the_last_bit(values: Matrix, seed: int) -> None:
    func = transformed(values)
    shape = [int(size) for size in func.params[0].shape]
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    ours = result(func, CPU_PIPELINE, x)
    assert (ours == result(func, "default", x)).all()
    matrix = np.array(values)
    np.testing.assert_allclose(ours, matrix @ x[: matrix.shape[1]], rtol=1e-4, atol=1e-4)


def test_each_operand_is_read_once_and_each_sum_stored_once() -> None:
    values = [[4.0, 0.0, -5.0, 0.0, 1.0], [0.0, -4.0, -4.0, 0.0, 1.0]]
    before = opaque(transformed(values))
    after = fold_tables(before)
    assert len(collect(before.body, tirx.Select)) > 0
    assert not collect(after.body, tirx.Select)
    read = [load for load in collect(after.body, ir.TensorLoad) if load.source.name == "x"]
    assert sorted(int(load.indices[0]) for load in read) == [0, 1, 2, 4], "column 3 is all zeros"
    sums = [x for x in collect(after.body, tirx.BufferStore) if isinstance(x.value, tirx.Add)]
    assert [int(store.indices[0]) for store in sums] == [0, 1]
    products = [len(collect(store.value, tirx.Mul)) for store in sums]
    assert products == [2, 2], "a factor of one is none"


@pytest.mark.parametrize(
    "operand",
    [
        pytest.param(lambda x, row, k, c: x[row, c], id="of the row"),
        pytest.param(lambda x, row, k, c: tirx.Select(row == k, x[k, c], x[row, c]), id="of both"),
    ],
)
def test_other_products_are_left_alone(operand: Callable[..., Any]) -> None:
    func = opaque(transformed([[1.0, 2.0], [3.0, 4.0]], operand))
    assert fold_tables(func).same_as(func)


@pytest.mark.parametrize("unrolled", [0, 1])
def test_loops_that_are_not_unrolled_are_left_alone(unrolled: int) -> None:
    func = opaque(transformed([[1.0, 2.0], [3.0, 4.0]], unrolled=unrolled))
    assert fold_tables(func).same_as(func)


def test_sums_under_a_condition_are_left_alone() -> None:
    func = opaque(transformed([[1.0, 2.0], [3.0, 4.0]]))

    def guarded(realize: SBlockRealize) -> SBlockRealize:
        condition = realize.block.name_hint != "out_update" or tirx.Var("x", "int32") < 1
        return SBlockRealize(realize.iter_values, condition, realize.block)

    conditional = func.with_body(structural_map(func.body, (SBlockRealize, guarded)))
    assert not fold_tables(func).body.same_as(func.body)
    assert fold_tables(conditional).same_as(conditional)


def test_no_loop_that_is_gone_is_spoken_of() -> None:
    func = fold_tables(opaque(transformed([[1.0, 2.0], [3.0, 4.0]])))
    bound = [loop.loop_var for loop in collect(func.body, tirx.For)]
    used = [x for x in collect(func.body, tirx.Var) if str(x.ty.dtype) == "int32"]
    assert used
    assert all(any(x.same_as(known) for known in bound) for x in used)
