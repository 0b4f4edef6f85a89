"""Conversion to channels last: whatever surrounds a convolution, the result stays the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.target import Target

from ansor.frontend.deploy.runtime import compile_model
from ansor.frontend.optimization import optimize
from ansor.frontend.passes.channels_last import channels_last
from ansor.frontend.rewrite import op_name
from tests.frontend.test_frontend_graph import kernel, plain_result, relax_module

SHAPE = (1, 8, 6, 6)


def after_convolution(body: Callable[[Any], Any]) -> tvm.IRModule:
    return relax_module(SHAPE, lambda x: body(relax.op.nn.conv2d(x, kernel(8, 8, 3, 3), padding=1)))


BODIES: dict[str, Callable[[Any], Any]] = {
    "squeeze": lambda y: relax.op.squeeze(relax.op.mean(y, [-1], True), [-1]),
    "squeeze several": lambda y: relax.op.squeeze(relax.op.mean(y, [-1, 1], True), [-1, 1]),
    "transpose": lambda y: relax.op.permute_dims(y, [0, 2, -1, 1]),
    "stack": lambda y: relax.op.stack([y, relax.op.negative(y)], -3),
    "stack first": lambda y: relax.op.stack([y, relax.op.negative(y)], 0),
}


@pytest.mark.parametrize("name", BODIES)
def test_negative_axes_and_new_axes_after_a_convolution(name: str, target: Target) -> None:
    mod = after_convolution(BODIES[name])
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    found = compile_model(optimize(mod, target), target)(x)
    expected = plain_result(mod, x)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_swapping_two_axes_counted_from_the_end_is_no_reshape(target: Target) -> None:
    mod = relax_module((3, 4), lambda x: relax.op.permute_dims(x, [-1, 0]))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(compile_model(optimize(mod, target), target)(x), x.T)


def test_without_convolutions_nothing_changes() -> None:
    mod = relax_module((2, 3), relax.op.nn.relu)
    assert channels_last(mod) is mod


def test_where_the_pass_fails_the_layout_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Any:
        raise MemoryError

    monkeypatch.setattr(relax.transform, "ConvertLayout", fail)
    mod = after_convolution(relax.op.nn.relu)
    assert channels_last(mod) is mod


def test_convolutions_become_channels_last() -> None:
    function = channels_last(after_convolution(relax.op.nn.relu))["main"]
    values = [binding.value for block in function.body.blocks for binding in block.bindings]
    layouts = [str(v.attrs.data_layout) for v in values if op_name(v) == "relax.nn.conv2d"]
    assert layouts == ["NHWC"]
