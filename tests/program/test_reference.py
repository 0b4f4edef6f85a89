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
    np.testing.assert_array_equal(run(reference_of(definition.func), inputs, shape), written)


def test_the_definition_is_left_alone() -> None:
    func = workload("conv2d").func
    before = func.script()
    reference_of(func)
    assert func.script() == before
