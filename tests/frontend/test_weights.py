"""The layout of a network's weights in memory."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import tvm
from tvm import relax
from tvm.target import Target

from ansor.frontend import compile_model, optimize
from ansor.frontend.deploy.detached_weights import bind_weights, detach_weights, in_huge_pages


def product(dtype: str) -> tuple[tvm.IRModule, np.ndarray]:
    """x @ w + b in a dtype, and what it is of ones."""
    rng = np.random.default_rng(0)
    values = [rng.integers(-3, 4, shape).astype(dtype) for shape in ((6, 5), (5,))]
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 6), dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.matmul(x, relax.const(values[0], dtype)))
            out = builder.emit_output(relax.op.add(y, relax.const(values[1], dtype)))
        builder.emit_func_output(out)
    expected = values[0].astype("float64").sum(axis=0) + values[1].astype("float64")
    return builder.get(), np.stack([expected] * 2)


def test_weights_lie_one_after_the_other() -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "a": rng.standard_normal((3, 5)).astype(np.float32),
        "b": rng.integers(0, 9, 7).astype(np.int64),
        "c": rng.standard_normal(4).astype(ml_dtypes.bfloat16),
        "d": np.asarray(2.5, dtype=np.float64),
        "e": np.zeros((0, 4), dtype=np.float32),
    }
    tensors = in_huge_pages(arrays)
    for tensor, array in zip(tensors, arrays.values(), strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)
        assert str(tensor.dtype) == str(array.dtype)
    first, second = (np.from_dlpack(tensor).ctypes.data for tensor in tensors[:2])
    assert second - first == 64
    assert first % 64 == 0


def test_every_weight_becomes_a_parameter() -> None:
    mod, _ = product("float32")
    bare, arrays = detach_weights(mod)
    names = [str(param.name) for param in bare["main"].params]
    assert names == ["x", *arrays]
    assert [array.shape for array in arrays.values()] == [(6, 5), (5,)]


def test_a_weight_without_dimensions_is_bound_again() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4,), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(relax.op.add(x, relax.const(2.5, "float32")))
        builder.emit_func_output(out)
    bare, arrays = detach_weights(builder.get())
    target = Target({"kind": "llvm"})
    model = compile_model(optimize(bind_weights(bare, arrays), target), target)
    np.testing.assert_array_equal(model(np.ones(4, np.float32)), np.full(4, 3.5))


def test_networks_of_any_float_run() -> None:
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        mod, expected = product(dtype)
        target = Target({"kind": "llvm"})
        model = compile_model(optimize(mod, target), target)
        assert len(model.weights) == 2
        x = np.ones((2, 6), dtype=np.dtype(dtype))
        np.testing.assert_array_equal(np.asarray(model(x), dtype="float64"), expected)


def test_a_layer_norm_over_several_axes_after_a_convolution() -> None:
    """Channels-last moves its axes; its scale and shift have to move along."""
    rng = np.random.default_rng(0)
    kernel, scale, shift = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((4, 3, 3, 3), (4, 6, 5), (4, 6, 5))
    )
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 3, 6, 5), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            conv = builder.emit(relax.op.nn.conv2d(x, relax.const(kernel), padding=1))
            parts = (relax.const(scale), relax.const(shift))
            norm = relax.op.nn.layer_norm(conv, *parts, axes=[1, 2, 3], epsilon=1e-5)
            out = builder.emit_output(norm)
        builder.emit_func_output(out)
    target = Target({"kind": "llvm"})
    data = rng.standard_normal((1, 3, 6, 5)).astype(np.float32)
    padded = np.pad(data.astype(float), ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    y = np.einsum("nchwij,fcij->nfhw", seen, kernel)
    expected = (y - y.mean()) / np.sqrt(y.var() + 1e-5) * scale + shift
    found = compile_model(optimize(builder.get(), target), target)(data)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
