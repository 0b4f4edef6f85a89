"""Each workload computes what its reference computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import tvm
from definitions import FLOAT32, workload

from ansor.cli.model_argument import parse_model
from ansor.errors import ArgumentError
from ansor.workloads import Workload, build, names, suite_workload
from ansor.workloads.suite import PRODUCTS
from ansor.workloads.workload import Array


@pytest.mark.parametrize("name", FLOAT32)
def test_the_definition_agrees_with_numpy(name: str) -> None:
    definition = workload(name)
    inputs = definition.inputs(np.random.default_rng(0))
    expected = definition.reference(*inputs)
    module = tvm.IRModule({"main": definition.func.with_attr("global_symbol", "main")})
    shape = tuple(int(size) for size in definition.tensors[-1].shape)
    assert expected.shape == shape
    assert expected.dtype == np.float32
    out = tvm.runtime.tensor(np.full(shape, np.nan, dtype=np.float32))
    tvm.compile(module, "llvm")["main"](*[tvm.runtime.tensor(x) for x in inputs], out)
    assert np.abs(out.numpy() - expected).max() <= 1e-5 * np.abs(expected).max()


LOW = {
    "matmul": {"rows": 9, "columns": 7, "depth": 11, "relu": 1},
    "dense": {"rows": 5, "columns": 12, "depth": 30},
    "batch_matmul": {"batch": 3, "rows": 5, "columns": 7, "depth": 9},
    "conv1d": {"length": 9, "channels": 5, "filters": 6},
    "conv2d": {"height": 9, "width": 7, "channels": 5, "filters": 6, "stride": 2},
    "depthwise_conv2d": {"height": 9, "width": 7, "channels": 5},
}
SUITE = {"C2D": (9, 8, 3, 8, 5, 2, 2), "GRP": (7, 6, 8, 16, 3, 1, 1, 4), "DEP": (8, 7, 8, 3, 2, 1)}


def low(name: str, dtype: str) -> Workload:
    """A small product or convolution of the registry or the suite."""
    shape = SUITE.get(name)
    return PRODUCTS[name](name, 2, shape, dtype) if shape else build(name, dtype=dtype, **LOW[name])


def computed(definition: Workload, inputs: Sequence[Array], like: Array) -> Array:
    """The output of the definition without a schedule."""
    module = tvm.IRModule({"main": definition.func.with_attr("global_symbol", "main")})
    out = tvm.runtime.tensor(np.full(like.shape, -7, dtype=like.dtype))
    tvm.compile(module, "llvm")["main"](*[tvm.runtime.tensor(x) for x in inputs], out)
    return out.numpy()


@pytest.mark.parametrize("name", [*LOW, *SUITE])
def test_sums_of_integers_are_exact(name: str) -> None:
    definition = low(name, "int8")
    inputs = definition.inputs(np.random.default_rng(0))
    assert [array.dtype.name for array in inputs[:2]] == ["uint8", "int8"]
    expected = definition.reference(*inputs)
    assert expected.dtype == np.int32
    assert np.abs(expected).max() > 1 << 13  # no sum would fit in 8 bits
    assert (computed(definition, inputs, expected) == expected).all()


@pytest.mark.parametrize("name", [*LOW, *SUITE])
def test_bfloat16_is_rounded_once(name: str) -> None:
    definition = low(name, "bfloat16")
    inputs = definition.inputs(np.random.default_rng(0))
    assert {array.dtype.name for array in inputs[:2]} == {"bfloat16"}
    found = computed(definition, inputs, definition.reference(*inputs)).astype(np.float64)
    wide = low(name, "float32").reference(*[array.astype(np.float32) for array in inputs])
    half_a_unit = 2.0**-8 * np.abs(wide)  # at most: a significand has 8 bits
    assert (np.abs(found - wide) <= half_a_unit + 1e-5).all()


@pytest.mark.parametrize("name", names())
def test_defaults_are_complete(name: str) -> None:
    assert build(name).name == name
    assert build(name).func is not None


def test_inputs_are_the_same_for_the_same_seed() -> None:
    one, other = (workload("conv2d").inputs(np.random.default_rng(3)) for _ in range(2))
    assert all((a == b).all() for a, b in zip(one, other, strict=True))
    assert [a.shape for a in one] == [(1, 8, 8, 8), (3, 3, 8, 16), (16,)]


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ArgumentError, match=r"name='gemm'.*conv2d.*matmul.*softmax"):
        build("gemm")


def test_an_unknown_size_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ArgumentError, match=r"shape='heigth'.*height, width"):
        build("conv2d", heigth=3)


def test_a_dtype_is_one_that_the_operator_has() -> None:
    with pytest.raises(ArgumentError, match=r"dtype='int4'.*float32, float16, bfloat16, int8"):
        build("matmul", dtype="int4")
    with pytest.raises(
        ArgumentError, match=r"dtype='int8': use float32, in which softmax is defined"
    ):
        build("softmax", dtype="int8")
    with pytest.raises(ArgumentError, match=r"dtype='int8': T2D\.0 is of no family.*C1D, C2D"):
        suite_workload("T2D.0", dtype="int8")
    assert str(suite_workload("GMM.3", 1, "int8").tensors[-1].dtype) == "int32"


def test_a_command_names_sizes_and_dtype() -> None:
    a, _, c = parse_model("matmul:rows=6, dtype=bfloat16")  # type: ignore[misc]
    assert [int(size) for size in a.shape] == [6, 128]
    assert (str(a.dtype), str(c.dtype)) == ("bfloat16", "bfloat16")
    with pytest.raises(ArgumentError, match="write sizes as name=integer"):
        parse_model("matmul:rows=bfloat16")


@pytest.mark.parametrize("value", [0, -1, 2.5, "8", None])
def test_a_size_must_be_a_positive_integer(value: object) -> None:
    with pytest.raises(ArgumentError, match=r"rows=.*integer of at least 1"):
        build("matmul", rows=value)  # type: ignore[arg-type]


def test_a_kernel_larger_than_the_image_is_refused() -> None:
    with pytest.raises(ArgumentError, match="kernel=9: must be at most 6"):
        build("conv2d", height=4, width=4, kernel=9)
