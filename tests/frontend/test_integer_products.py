"""Products of 8-bit integers: exact for all zero points, as NumPy computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax
from tvm.target import Target

from ansor.frontend import compile_model, optimize
from ansor.frontend.distinct_functions import tir_calls
from ansor.frontend.passes.integer.form import integer_form
from ansor.frontend.rewrite import op_name

op = relax.op
Array = Any
DTYPES = st.sampled_from(("int8", "uint8"))


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def module(arrays: dict[str, Array], body: Callable[..., Any]) -> tvm.IRModule:
    """A module whose main computes `body` of variables like the arrays."""
    builder = relax.BlockBuilder()
    variables = [
        relax.Var(name, relax.TensorType(a.shape, str(a.dtype))) for name, a in arrays.items()
    ]
    with builder.function("main", variables):
        with builder.dataflow():
            result = builder.emit_output(body(*variables))
        builder.emit_func_output(result)
    return builder.get()


def decoded(x: Any, scale: Array, zero: Array, axis: int = -1) -> Any:
    return op.dequantize(x, relax.const(scale), relax.const(zero), axis)


def products(mod: tvm.IRModule) -> list[Any]:
    """The matrix products and convolutions of a module."""
    values = [b.value for block in mod["main"].body.blocks for b in block.bindings]
    return [v for v in values if op_name(v).startswith(("relax.matmul", "relax.nn.conv"))]


def check_integers(mod: tvm.IRModule) -> None:
    """Every product is one of 8-bit integers, the right operand signed."""
    found = products(integer_form(mod))
    assert found
    for call in found:
        assert str(call.ty.dtype) == "int32"
        assert str(call.args[0].ty.dtype) in ("int8", "uint8")
        assert str(call.args[1].ty.dtype) == "int8"


def run(mod: tvm.IRModule, *arrays: Array) -> Any:
    target = Target({"kind": "llvm"})
    return compile_model(optimize(mod, target), target)(*arrays)


@settings(max_examples=12, deadline=None)
@given(DTYPES, DTYPES, st.booleans(), st.booleans(), st.integers(0, 1 << 30))
def test_products_of_matrices(
    left: str, right: str, is_weight: bool, per_channel: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a, b = integers(rng, (2, 5, 9), left), integers(rng, (9, 4), right)
    za = integers(rng, (), left)
    zb = integers(rng, (4,) if per_channel else (), right)
    sa, sb = np.float32(0.5), rng.uniform(0.1, 1, zb.shape).astype(np.float32)

    def body(x: Any, *y: Any) -> Any:
        weight = y[0] if y else relax.const(b)
        return op.matmul(decoded(x, sa, za), decoded(weight, sb, zb, 1))

    mod = module({"x": a} if is_weight else {"x": a, "y": b}, body)
    check_integers(mod)
    found = run(mod, *([a] if is_weight else [a, b]))
    exact = (a.astype(np.int64) - za) @ (b.astype(np.int64) - zb)
    np.testing.assert_allclose(found, exact * (sa * sb), rtol=1e-6)


@settings(max_examples=12, deadline=None)
@given(DTYPES, st.sampled_from((1, 2, 4)), st.booleans(), st.booleans(), st.integers(0, 1 << 30))
def test_convolutions(
    dtype: str, groups: int, per_channel: bool, has_bias: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x, w = integers(rng, (1, 4, 6, 7), dtype), integers(rng, (8, 4 // groups, 3, 3), "int8")
    zero, sx = integers(rng, (), dtype), np.float32(0.25)
    sw = rng.uniform(0.1, 1, 8 if per_channel else ()).astype(np.float32)
    steps = integers(rng, (8,), "int8").astype(np.int32)
    bias = (steps * (sx * sw)).astype(np.float32).reshape(1, 8, 1, 1)
    geometry = {"strides": (2, 1), "padding": (1, 0, 2, 1), "dilation": (1, 2), "groups": groups}

    def body(data: Any) -> Any:
        weight = decoded(relax.const(w), sw, np.zeros(sw.shape, np.int8), 0)
        y = op.nn.conv2d(decoded(data, sx, zero), weight, **geometry)
        return op.add(y, relax.const(bias)) if has_bias else y

    mod = module({"x": x}, body)
    check_integers(mod)
    wide = [value.astype(np.float64) for value in (x, w)]
    exact = convolved(wide[0] - zero, wide[1], **geometry)
    total = exact + steps.reshape(1, 8, 1, 1) * has_bias
    scale = (sx * sw).reshape(1, -1, 1, 1)
    np.testing.assert_allclose(run(mod, x), total * scale, rtol=1e-6)


def convolved(x: Array, w: Array, strides: Any, padding: Any, dilation: Any, groups: int) -> Array:
    """A convolution in two dimensions, one tap of the kernel after the other."""
    top, left, bottom, right = padding
    padded = np.pad(x, [(0, 0), (0, 0), (top, bottom), (left, right)])
    extents = [
        (size - (kernel - 1) * apart - 1) // stride + 1
        for size, kernel, apart, stride in zip(
            padded.shape[2:], w.shape[2:], dilation, strides, strict=True
        )
    ]
    outputs = []
    for group in range(groups):
        channels = padded[:, group * w.shape[1] : (group + 1) * w.shape[1]]
        filters = np.split(w, groups)[group]
        total = np.zeros((1, len(filters), *extents))
        for i, j in np.ndindex(*w.shape[2:]):
            rows = i * dilation[0] + strides[0] * np.arange(extents[0])
            columns = j * dilation[1] + strides[1] * np.arange(extents[1])
            taps = channels[:, :, rows[:, None], columns]
            total += np.einsum("nchw,oc->nohw", taps, filters[:, :, i, j])
        outputs.append(total)
    return np.concatenate(outputs, 1)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 255), st.sampled_from(((0, 0, 0, 0), (1, 2, 0, 1))), st.integers(0, 99))
def test_zero_points_that_the_network_computes(zero: int, padding: Any, seed: int) -> None:
    """As after a DynamicQuantizeLinear: padding cannot hold them."""
    rng = np.random.default_rng(seed)
    x, w = integers(rng, (1, 2, 5, 6), "uint8"), integers(rng, (4, 2, 3, 3), "int8")
    z = np.asarray(zero, np.uint8)

    def body(data: Any, point: Any) -> Any:
        centred = op.subtract(op.astype(data, "int32"), op.astype(point, "int32"))
        weight = op.astype(relax.const(w), "int32")
        return op.nn.conv2d(centred, weight, padding=padding, out_dtype="int32")

    mod = module({"x": x, "z": z}, body)
    check_integers(mod)
    wide = [value.astype(np.float64) for value in (x, w)]
    exact = convolved(wide[0] - zero, wide[1], (1, 1), padding, (1, 1), 1)
    np.testing.assert_array_equal(run(mod, x, z), exact)


def test_weights_without_room_for_their_zero_point_stay_in_float() -> None:
    rng = np.random.default_rng(0)
    x, w = integers(rng, (1, 4, 6, 6), "uint8"), integers(rng, (8, 4, 3, 3), "uint8")
    w[0, 0, 0, :2] = 0, 255  # 0 - 100 and 255 - 100 need more than 8 bits

    def body(data: Any) -> Any:
        weight = decoded(relax.const(w), np.float32(1), np.uint8(100))
        return op.nn.conv2d(decoded(data, np.float32(1), np.uint8(7)), weight)

    mod = module({"x": x}, body)
    assert [str(call.ty.dtype) for call in products(integer_form(mod))] == ["float32"]
    exact = convolved(x.astype(float) - 7, w.astype(float) - 100, (1, 1), (0,) * 4, (1, 1), 1)
    np.testing.assert_allclose(run(mod, x), exact, rtol=1e-5)


MOVES: dict[str, Callable[[Any], Any]] = {
    "reshape": lambda x: op.reshape(x, (4, 36)),
    "permute": lambda x: op.permute_dims(x, (0, 2, 3, 1)),
    "max_pool": lambda x: op.nn.max_pool2d(x, (3, 3), (2, 2), (1, 1)),
    "slice": lambda x: op.strided_slice(x, [1], [1], [3]),
    "concat": lambda x: op.concat([x, x], 1),
}


@pytest.mark.parametrize("name", MOVES)
def test_data_movement_stays_in_eight_bits(name: str) -> None:
    x = integers(np.random.default_rng(0), (1, 4, 6, 6), "uint8")
    scale, zero = np.float32(0.5), np.uint8(9)

    def body(data: Any) -> Any:
        moved = MOVES[name](decoded(data, scale, zero))
        return op.quantize(moved, relax.const(scale), relax.const(zero), -1, "uint8")

    mod = module({"x": x}, body)
    dtypes = {str(call.ty.dtype) for call in tir_calls(optimize(mod, Target({"kind": "llvm"})))}
    assert dtypes <= {"uint8"}
    plain = module({"x": x}, MOVES[name])
    np.testing.assert_array_equal(run(mod, x), run(plain, x))


def test_parts_of_a_concatenation_are_quantised_one_by_one() -> None:
    rng = np.random.default_rng(0)
    x, y = integers(rng, (1, 4, 6), "uint8"), integers(rng, (1, 2, 6), "uint8")

    def body(a: Any, b: Any) -> Any:
        first = decoded(a, np.float32(0.5), np.uint8(9))
        second = decoded(b, np.float32(0.25), np.uint8(0))
        joined = op.concat([first, second], 1)
        return op.quantize(
            joined, relax.const(np.float32(0.5)), relax.const(np.uint8(9)), -1, "uint8"
        )

    mod = module({"x": x, "y": y}, body)
    values = [b.value for block in integer_form(mod)["main"].body.blocks for b in block.bindings]
    (joined,) = (value for value in values if op_name(value) == "relax.concat")
    assert {str(field.ty.dtype) for field in joined.args[0].fields} == {"uint8"}
    halves = np.rint(y * 0.5) + 9
    np.testing.assert_array_equal(run(mod, x, y), np.concatenate([x, np.minimum(halves, 255)], 1))


@given(
    dtype=DTYPES,
    zeros=st.sampled_from(((0, 0), (7, 7), (127, 127), (0, 7), (9, 0))),
    scale=st.floats(0.01, 2),
)
@settings(max_examples=15, deadline=None)
def test_integers_that_one_operator_reads_stay_in_float32(
    dtype: str, zeros: tuple[int, int], scale: float
) -> None:
    """Only if both zero points are equal. Otherwise clipping would change other values."""
    x = np.linspace(-400, 400, 301, dtype=np.float32).reshape(7, 43)
    step, (first, second) = np.float32(scale), (np.asarray(zero, dtype) for zero in zeros)

    def body(data: Any) -> Any:
        attrs = relax.const(step), relax.const(first), -1, dtype
        return op.abs(decoded(op.quantize(data, *attrs), step, second))

    mod = module({"x": x}, body)
    limits = np.iinfo(dtype)
    codes = np.clip(np.rint(x / step) + zeros[0], limits.min, limits.max)
    np.testing.assert_allclose(run(mod, x), np.abs((codes - zeros[1]) * step), rtol=1e-6)
    names = [
        op_name(b.value) for block in integer_form(mod)["main"].body.blocks for b in block.bindings
    ]
    assert ("relax.astype" not in names) == (zeros[0] == zeros[1])


def test_a_scale_is_moved_only_where_nothing_else_reads_the_value() -> None:
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    builder = relax.BlockBuilder()
    data = relax.Var("x", relax.TensorType(x.shape, "float32"))
    with builder.function("main", [data]):
        with builder.dataflow():
            doubled = builder.emit(op.multiply(data, relax.const(np.float32(2))))
            scale, zero = relax.const(np.float32(0.03)), relax.const(np.int8(0))
            codes = builder.emit(op.quantize(doubled, scale, zero, -1, "int8"))
            result = builder.emit_output(relax.Tuple([codes, doubled]))
        builder.emit_func_output(result)
    codes, doubled = run(builder.get(), x)
    np.testing.assert_array_equal(doubled, x * 2)
    np.testing.assert_array_equal(codes, np.rint(x * 2 / np.float32(0.03)).clip(-128, 127))


def test_networks_without_integers_are_left_alone() -> None:
    mod = module({"x": np.zeros((2, 3), np.float32)}, op.nn.relu)
    assert integer_form(mod) is mod


def test_products_that_differ_in_scales_and_zero_points_share_a_function() -> None:
    rng = np.random.default_rng(0)
    x, y = integers(rng, (2, 5, 9), "uint8"), integers(rng, (2, 9, 5), "uint8")

    def product(a: Any, b: Any, scale: float, zero: int) -> Any:
        left = decoded(a, np.float32(scale), np.uint8(zero))
        right = decoded(b, np.float32(scale / 2), np.uint8(zero + 3))
        return op.matmul(left, right)

    def body(a: Any, b: Any) -> Any:
        return op.add(product(a, b, 0.5, 7), product(a, b, 0.125, 90))

    mod = optimize(module({"x": x, "y": y}, body), Target({"kind": "llvm"}))
    calls = [str(call.args[0].name_hint) for call in tir_calls(mod)]
    matmuls = [name for name in calls if "matmul" in name]
    assert len(matmuls) == 2
    # The second one adds the first one's result.
    assert matmuls[1].startswith(matmuls[0])
