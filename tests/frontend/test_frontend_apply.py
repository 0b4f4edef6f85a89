"""Scheduled functions take the place of naive ones and are compiled as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import tirx
from tvm.target import Target

from ansor.dag.from_tir.read import buffer_names
from ansor.errors import ArgumentError
from ansor.frontend import (
    CompiledModel,
    apply_programs,
    compile_model,
    extract_functions,
    random_inputs,
)
from ansor.lowering.lower import lower
from ansor.program.layout import PackedLayout
from ansor.program.program import Program
from ansor.program.steps import LayoutRewrite


def function(mod: tvm.IRModule, name: str) -> tirx.PrimFunc:
    return next(f.func for f in extract_functions(mod) if f.name == name)


def vectorised(func: tirx.PrimFunc, block: str) -> tirx.PrimFunc:
    """The function with the innermost loop of one block vectorised and its outermost parallel."""
    schedule = tvm.s_tir.Schedule(func)
    loops = schedule.get_loops(schedule.get_sblock(block))
    schedule.parallel(schedule.fuse(*loops[:2]))
    schedule.vectorize(loops[-1])
    return schedule.mod["main"]


def test_scheduled_function_is_used(
    optimized: tvm.IRModule, compiled: CompiledModel, target: Target
) -> None:
    program = vectorised(function(optimized, "transpose"), "T_transpose")
    applied = apply_programs(optimized, {"transpose": program})
    scheduled = [
        line for line in applied["transpose"].script().splitlines() if "vectorized" in line
    ]
    assert scheduled
    x = random_inputs(compiled.inputs)
    np.testing.assert_array_equal(compile_model(applied, target)(*x), compiled(*x))


def test_wrong_program_changes_the_result(
    optimized: tvm.IRModule, compiled: CompiledModel, target: Target
) -> None:
    """A function that computes only zeros shows that the applied program runs."""
    script = function(optimized, "transpose").script()
    zeros = tvm.script.from_source(script.replace("= x[", "= T.float32(0) * x["))
    x = random_inputs(compiled.inputs)
    result = compile_model(apply_programs(optimized, {"transpose": zeros}), target)(*x)
    assert not np.allclose(result, compiled(*x))


def test_original_module_is_untouched(optimized: tvm.IRModule) -> None:
    before = optimized["transpose"]
    program = vectorised(function(optimized, "transpose"), "T_transpose")
    apply_programs(optimized, {"transpose": program})
    assert optimized["transpose"].same_as(before)


def test_unknown_function_is_named(optimized: tvm.IRModule) -> None:
    program = function(optimized, "transpose")
    with pytest.raises(ArgumentError, match="fused_nothing"):
        apply_programs(optimized, {"fused_nothing": program})


def test_program_with_other_parameters_is_refused(optimized: tvm.IRModule) -> None:
    program = function(optimized, "mean")
    with pytest.raises(ArgumentError, match=r"programs\['transpose'\].*must be"):
        apply_programs(optimized, {"transpose": program})


def test_extracted_function_compiles_alone(optimized: tvm.IRModule, target: Target) -> None:
    library: Any = tvm.compile(function(optimized, "transpose"), target)
    x = np.arange(3 * 32 * 32, dtype=np.float32).reshape(1, 3, 32, 32)
    result = tvm.runtime.tensor(np.zeros((1, 32, 32, 3), np.float32))
    library["main"](tvm.runtime.tensor(x), result)
    np.testing.assert_array_equal(result.numpy(), x.transpose(0, 2, 3, 1))


def conv_of(mod: tvm.IRModule) -> tuple[str, tirx.PrimFunc]:
    """The first convolution with at least eight output channels and constant weights."""
    found = next(f for f in extract_functions(mod) if "conv2d" in f.name and 1 in f.constants)
    return found.name, found.func


def test_packed_weights_give_the_same_result(
    optimized: tvm.IRModule, compiled: CompiledModel, target: Target
) -> None:
    name, func = conv_of(optimized)
    weight = list(buffer_names(func).values())[1]
    program = Program("packed", (LayoutRewrite("conv2d_nhwc", weight, "width"),), {"width": (4,)})
    applied = apply_programs(optimized, {name: lower(func, program)}, {name: {1: PackedLayout(4)}})
    x = random_inputs(compiled.inputs)
    np.testing.assert_allclose(compile_model(applied, target)(*x), compiled(*x), rtol=1e-5)


def test_a_packed_program_without_its_packing_is_refused(optimized: tvm.IRModule) -> None:
    name, func = conv_of(optimized)
    weight = list(buffer_names(func).values())[1]
    program = Program("packed", (LayoutRewrite("conv2d_nhwc", weight, "width"),), {"width": (4,)})
    with pytest.raises(ArgumentError, match=name):
        apply_programs(optimized, {name: lower(func, program)})
