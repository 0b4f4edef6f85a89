"""Each workload computes what its reference computes."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from definitions import NAMES, workload

from ansor.errors import ArgumentError
from ansor.workloads import build, names


@pytest.mark.parametrize("name", NAMES)
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


@pytest.mark.parametrize("value", [0, -1, 2.5, "8", None])
def test_a_size_must_be_a_positive_integer(value: object) -> None:
    with pytest.raises(ArgumentError, match=r"rows=.*integer of at least 1"):
        build("matmul", rows=value)  # type: ignore[arg-type]


def test_a_kernel_larger_than_the_image_is_refused() -> None:
    with pytest.raises(ArgumentError, match="kernel=9: must be at most 6"):
        build("conv2d", height=4, width=4, kernel=9)
