"""8-bit convolutions of few channels get zeros for whole groups of channels."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from ansor.frontend.passes.integer.channel_groups import with_whole_channels
from ansor.frontend.rewrite import Lookup, op_name, rewrite_calls, static_shape


def convolution(
    channels: int, dtype: str = "int8", groups: int = 1
) -> tuple[tvm.IRModule, np.ndarray]:
    """A channels-last convolution of `[1, 5, 6, channels]` uint8, with its weights."""
    rng = np.random.default_rng(channels)
    data, total = ("uint8", "int32") if dtype == "int8" else (dtype, dtype)
    weight = rng.integers(-9, 9, (3, 3, channels // groups, 4 * groups)).astype(dtype)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 5, 6, channels), data))
    with builder.function("main", [x]):
        with builder.dataflow():
            options = {"data_layout": "NHWC", "kernel_layout": "HWIO", "out_dtype": total}
            constant = relax.const(weight, dtype)
            result = relax.op.nn.conv2d(x, constant, padding=1, groups=groups, **options)
            out = builder.emit_output(result)
        builder.emit_func_output(out)
    return builder.get(), weight


def run(mod: tvm.IRModule, x: np.ndarray) -> np.ndarray:
    built = tvm.relax.build(mod, "llvm")
    machine = relax.VirtualMachine(built, tvm.cpu())
    return np.asarray(machine["main"](tvm.runtime.tensor(x)).numpy())


def channels_of(mod: tvm.IRModule) -> list[int]:
    """Input channels of each convolution."""
    found = []

    def collect(call: object, _: Lookup) -> object:
        if op_name(call) == "relax.nn.conv2d":
            found.append((static_shape(call.args[0]) or ())[-1])  # type: ignore[attr-defined]
        return call

    rewrite_calls(mod, collect)
    return found


@settings(max_examples=8, deadline=None)
@given(channels=st.integers(1, 9), seed=st.integers(0, 3))
def test_results_stay_the_same_with_whole_channels(channels: int, seed: int) -> None:
    mod, _ = convolution(channels)
    changed = with_whole_channels(mod)
    assert channels_of(changed) == [-(-channels // 4) * 4]
    x = np.random.default_rng(seed).integers(0, 256, (1, 5, 6, channels)).astype(np.uint8)
    assert np.array_equal(run(changed, x), run(mod, x))


@pytest.mark.parametrize(("dtype", "groups"), [("float32", 1), ("int8", 3)])
def test_other_convolutions_keep_their_channels(dtype: str, groups: int) -> None:
    mod, _ = convolution(3, dtype, groups)
    assert channels_of(with_whole_channels(mod)) == [3]
