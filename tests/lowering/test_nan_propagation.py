"""Maxima and minima give NaN where an operand is NaN, and a constant operand costs nothing."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, tirx

from ansor.lowering.passes.nan_propagation import pass_nan
from ansor.lowering.pipeline import CPU_PIPELINE

LENGTH = 64
LANES = 16
AVX512 = {"kind": "llvm", "mcpu": "skylake-avx512"}


def _vectorised(value: Callable[[Any, Any], Any]) -> tvm.IRModule:
    a, b = (te.placeholder((LENGTH,), name=name) for name in "ab")
    result = te.compute((LENGTH,), lambda i: value(a[i], b[i]), name="result")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([a, b, result]))
    (loop,) = schedule.get_loops(schedule.get_sblock("result"))
    schedule.vectorize(schedule.split(loop, [None, LANES])[1])
    return schedule.mod


def _compiled(mod: tvm.IRModule, target: Any) -> Any:
    return tvm.compile(mod, target=tvm.target.Target(target), tir_pipeline=CPU_PIPELINE)


def _zero() -> Any:
    return tirx.const(0, "float32")


@pytest.mark.parametrize(
    ("value", "reference"),
    [
        (lambda a, b: te.max(a, _zero()), lambda a, b: np.maximum(a, 0)),
        (lambda a, b: te.max(_zero(), a), lambda a, b: np.maximum(a, 0)),
        (lambda a, b: te.min(te.max(a, _zero()), b), lambda a, b: np.minimum(np.maximum(a, 0), b)),
        (te.max, np.maximum),
        (te.min, np.minimum),
    ],
)
def test_nan_is_passed_on(value: Any, reference: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, LENGTH)).astype("float32")
    a[::3] = np.nan
    b[::5] = np.nan
    result = tvm.runtime.tensor(np.zeros(LENGTH, "float32"))
    _compiled(_vectorised(value), "llvm")(*map(tvm.runtime.tensor, (a, b)), result)
    np.testing.assert_array_equal(result.numpy(), reference(a, b))


def test_reductions_pass_nan_on_wherever_it_is() -> None:
    a = te.placeholder((5, 5), name="a")
    axis = te.reduce_axis((0, 5), name="k")
    largest = te.compute((5,), lambda i: te.max(a[i, axis], axis=axis), name="largest")
    mod = tvm.IRModule({"main": te.create_prim_func([a, largest])})
    data = np.ones((5, 5), "float32")
    np.fill_diagonal(data, np.nan)
    result = tvm.runtime.tensor(np.zeros(5, "float32"))
    _compiled(mod, "llvm")(tvm.runtime.tensor(data), result)
    assert np.isnan(result.numpy()).all()


def test_a_maximum_with_a_constant_is_one_instruction() -> None:
    mod = _vectorised(lambda a, b: te.max(a, _zero()))
    code = _compiled(mod, AVX512).mod.inspect_source("s")
    assert len(re.findall("vmaxps", code)) == LENGTH // LANES
    assert not re.search("vcmp|vblend", code)


def test_other_functions_are_left_alone() -> None:
    func = _vectorised(lambda a, b: a + b)["main"]
    assert pass_nan(func).same_as(func)
