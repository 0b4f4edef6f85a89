"""Depthwise convolutions that join the pointwise ones after them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from test_frontend_graph import kernel, plain_result, relax_module
from tvm import relax
from tvm.target import Target

from ansor.config import GRAPH
from ansor.frontend import compile_model, extract_functions, optimize

op = relax.op


def depthwise(x: Any, channels: int, stride: int = 1) -> Any:
    weight = kernel(channels, 1, 3, 3)
    found = op.nn.conv2d(x, weight, strides=stride, padding=1, groups=channels)
    return op.nn.relu(op.add(found, kernel(1, channels, 1, 1)))


def pointwise(x: Any, channels: int, filters: int) -> Any:
    return op.add(op.nn.conv2d(x, kernel(filters, channels, 1, 1)), kernel(1, filters, 1, 1))


def convolutions(mod: tvm.IRModule, target: Target) -> list[int]:
    """Numbers of convolutions of the functions that have any."""
    counts = [f.name.count("conv2d") for f in extract_functions(optimize(mod, target))]
    return [count for count in counts if count]


LARGE = (1, 64, 80, 80)  # 1.6 MB
SMALL = (1, 64, 28, 28)


@pytest.mark.parametrize(("shape", "expected"), [(LARGE, [2]), (SMALL, [1, 1])])
def test_a_pair_becomes_one_function_where_much_lies_between(
    target: Target, shape: tuple[int, ...], expected: list[int]
) -> None:
    assert bool(4 * np.prod(shape) >= GRAPH.min_pair_bytes) is (expected == [2])
    mod = relax_module(shape, lambda x: pointwise(depthwise(x, 64), 64, 16))
    assert convolutions(mod, target) == expected


def test_a_residual_joins_its_pair(target: Target) -> None:
    mod = relax_module(LARGE, lambda x: op.add(pointwise(depthwise(x, 64), 64, 64), x))
    assert convolutions(mod, target) == [2]


def test_a_result_that_others_read_as_well_stays_apart(target: Target) -> None:
    def body(x: Any) -> Any:
        deep = depthwise(x, 64)
        return op.add(op.mean(pointwise(deep, 64, 64), [2, 3]), op.mean(deep, [2, 3]))

    assert convolutions(relax_module(LARGE, body), target) == [1, 1]


def test_a_function_with_other_inputs_elsewhere_stays_apart(target: Target) -> None:
    def body(x: Any) -> Any:
        return pointwise(depthwise(pointwise(x, 64, 64), 64), 64, 64)

    found = extract_functions(optimize(relax_module(LARGE, body), target))
    assert sorted(f.weight for f in found if "conv2d" in f.name) == [1, 2]


def test_what_is_around_a_pair_stays_as_it_was(target: Target) -> None:
    def body(x: Any) -> Any:
        found = pointwise(depthwise(pointwise(x, 64, 64), 64), 64, 32)
        return op.nn.softmax(op.mean(found, axis=[2, 3]))

    names = [f.name for f in extract_functions(optimize(relax_module(LARGE, body), target))]
    assert [name.count("conv2d") for name in names] == [0, 1, 2, 0, 0]


def strided(x: Any) -> Any:
    return pointwise(depthwise(x, 64, 2), 64, 24)


def with_its_own_input(x: Any) -> Any:
    """What lies between the convolutions is added to the result as well."""
    deep = depthwise(x, 64, 2)
    return op.add(pointwise(deep, 64, 64), deep)


@pytest.mark.parametrize("body", [strided, with_its_own_input])
def test_a_pair_computes_the_same(target: Target, body: Any) -> None:
    shape = (1, 64, 160, 160)
    mod = relax_module(shape, body)
    x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    optimized = optimize(mod, target)
    assert any(f.name.count("conv2d") == 2 for f in extract_functions(optimized))
    expected = plain_result(mod, x)
    found = compile_model(optimized, target)(x)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
