"""Constant folding: every evaluator computes what TVM computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import relax
from tvm.ir import GenericConst

from ansor.frontend.passes.constant_folding import fold_constants
from tests.frontend.test_frontend_graph import kernel, plain_result, relax_module

BODIES: dict[str, Callable[[Any], Any]] = {
    "full": lambda w: relax.op.add(w, relax.op.full((4, 6), relax.const(2.5, "float32"))),
    "concat": lambda w: relax.op.concat([w, w, relax.op.negative(w)], 1),
    "slice": lambda w: relax.op.strided_slice(w, [0], [1], [3]),
    "slice from the end": lambda w: relax.op.strided_slice(w, [-1, 0], [-4, 0], [-1, 4], [2, 1]),
    "slice beyond": lambda w: relax.op.strided_slice(w, [1], [2], [2**63 - 1]),
    "slice backwards": lambda w: relax.op.strided_slice(w, [1], [5], [1], [-2]),
}


@pytest.mark.parametrize("name", BODIES)
def test_constants_are_folded(name: str) -> None:
    mod = relax_module((1,), lambda _: BODIES[name](kernel(4, 6)))
    expected = plain_result(mod, np.zeros(1, np.float32))
    body = fold_constants(mod)["main"].body
    bindings = [binding for block in body.blocks for binding in block.bindings]
    value = bindings[-1].value if bindings else body.body
    assert isinstance(value, GenericConst)
    np.testing.assert_array_equal(value.value.numpy(), expected)
