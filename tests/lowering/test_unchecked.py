"""A schedule without type checks has the same results and errors as TVM's."""

from __future__ import annotations

import pytest
import tvm
from tvm import s_tir, te
from tvm_ffi import structural_equal

from ansor.lowering.unchecked import UncheckedSchedule


def module() -> tvm.IRModule:
    x = te.placeholder((8, 6), name="x")
    k = te.reduce_axis((0, 6), "k")
    total = te.compute((8,), lambda i: te.sum(x[i, k], axis=k), name="total")
    return tvm.IRModule({"main": te.create_prim_func([x, total])})


def test_the_same_schedule() -> None:
    made = []
    for kind in (s_tir.Schedule, UncheckedSchedule):
        sch = kind(module(), error_render_level="none")
        row, column = sch.get_loops(sch.get_sblock("total"))
        outer, inner = sch.split(row, [None, 4])
        sch.reorder(outer, column, inner)
        sch.vectorize(inner)
        made.append(sch.mod["main"])
    assert structural_equal(*made)


def test_no_argument_is_looked_at_before_tvm_does() -> None:
    assert UncheckedSchedule.split is s_tir.Schedule.split.__wrapped__
    assert issubclass(UncheckedSchedule, s_tir.Schedule)


def test_what_does_not_apply_is_refused() -> None:
    sch = UncheckedSchedule(module(), error_render_level="none")
    with pytest.raises(RuntimeError):
        sch.vectorize(sch.get_loops(sch.get_sblock("total"))[-1])  # a reduction
