"""Constants keep their dtype and shape, whatever is done to them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import relax, tirx
from tvm.target import Target

from ansor.dag.from_tir.read import buffer_names
from ansor.frontend import apply_programs, compile_model, optimize
from ansor.frontend.passes.constant_folding import fold_constants
from ansor.frontend.rewrite import constant
from ansor.lowering.lower import lower
from ansor.program.layout import PackedLayout
from ansor.program.program import Program
from ansor.program.steps import LayoutRewrite

TARGET = Target({"kind": "llvm"})


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float16, np.bool_, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_dtype_and_shape_stay(dtype: type, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, dtype)
    found = constant(array).value
    assert (str(found.dtype), tuple(found.shape)) == (str(array.dtype), shape)
    assert found.numpy() == pytest.approx(array)


def with_constant(values: np.ndarray, weigh: object) -> tvm.IRModule:
    """x and a constant through a Relax expression."""
    builder = relax.BlockBuilder()
    dtype = str(values.dtype)
    x = relax.Var("x", relax.TensorType((2, values.shape[-1]), dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(weigh(x, relax.const(values, dtype)))  # type: ignore[operator]
        builder.emit_func_output(out)
    return builder.get()


@pytest.mark.parametrize("dtype", ["float64", "int64", "float32"])
def test_folded_constants_meet_operands_of_their_dtype(dtype: str) -> None:
    values = np.arange(5).astype(dtype)
    mod = with_constant(values, lambda x, w: relax.op.add(x, relax.op.expand_dims(w, 0)))
    assert "expand_dims" not in fold_constants(mod).script()
    model = compile_model(optimize(mod, TARGET), TARGET)
    x = np.full((2, 5), 1 << 20, dtype)
    np.testing.assert_array_equal(model(x), x + values)


def test_packed_weights_in_float64_stay_so() -> None:
    values = np.random.default_rng(0).standard_normal((8, 8))
    optimized = optimize(with_constant(values, relax.op.matmul), TARGET)
    ((name, func),) = (
        (str(variable.name_hint), func)
        for variable, func in optimized.functions.items()
        if isinstance(func, tirx.PrimFunc)
    )
    block, weight = "matmul", list(buffer_names(func).values())[1]
    program = Program("packed", (LayoutRewrite(block, weight, "width"),), {"width": (4,)})
    applied = apply_programs(optimized, {name: lower(func, program)}, {name: {1: PackedLayout(4)}})
    x = np.random.default_rng(1).standard_normal((2, 8))
    np.testing.assert_allclose(compile_model(applied, TARGET)(x), x @ values, rtol=1e-12)
