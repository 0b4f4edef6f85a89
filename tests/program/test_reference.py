"""What programs are checked against is the definition, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from definitions import NAMES, workload

from ansor.program.reference import reference_of


def run(func: Any, inputs: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    out = tvm.runtime.tensor(np.full(shape, np.nan, dtype=np.float32))
    tvm.compile(module, "llvm")["main"](*[tvm.runtime.tensor(x) for x in inputs], out)
    return out.numpy()


@pytest.mark.parametrize("name", NAMES)
def test_it_computes_exactly_what_was_written(name: str) -> None:
    definition = workload(name)
    inputs = definition.inputs(np.random.default_rng(0))
    shape = definition.reference(*inputs).shape
    written = run(definition.func, inputs, shape)
    np.testing.assert_array_equal(run(reference_of(definition.func).func, inputs, shape), written)


def test_the_definition_is_left_alone() -> None:
    func = workload("conv2d").func
    before = func.script()
    reference_of(func)
    assert func.script() == before


@pytest.mark.parametrize(("name", "iterations"), [("matmul", 5000), ("conv2d", 100), ("conv1d", 1)])
def test_a_sample_is_part_of_the_whole(name: str, iterations: float) -> None:
    """What is computed is computed exactly, spread out, and includes the last element."""
    definition = workload(name)
    inputs = definition.inputs(np.random.default_rng(0))
    shape = definition.reference(*inputs).shape
    whole = run(reference_of(definition.func).func, inputs, shape)
    part = run(reference_of(definition.func, iterations).func, inputs, shape)
    made = ~np.isnan(part)
    assert 0 < made.sum() < made.size
    assert made.reshape(-1)[-1]
    np.testing.assert_array_equal(part[made], whole[made])
    rows = made.reshape(-1, shape[-1])
    assert (rows.any(axis=1) == rows.all(axis=1)).all()


def test_what_is_read_later_is_computed_whole() -> None:
    """Softmax: sums and exponentials are needed by every output."""
    definition = workload("softmax")
    inputs = definition.inputs(np.random.default_rng(0))
    shape = definition.reference(*inputs).shape
    whole = run(reference_of(definition.func).func, inputs, shape)
    part = run(reference_of(definition.func, 40).func, inputs, shape)
    made = ~np.isnan(part)
    assert 0 < made.sum() < made.size
    np.testing.assert_array_equal(part[made], whole[made])


def test_what_is_partial_is_told() -> None:
    func = workload("matmul").func
    assert reference_of(func).partial == frozenset()
    assert reference_of(func, 1e9).partial == frozenset()
    assert reference_of(func, 100).partial == {2}
