"""Biases that make up for the mean error of rounded weights."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
from small_networks import TARGET
from tvm import relax

from ansor.frontend import compile_model, optimize
from ansor.frontend.precision.network_form import (
    NetworkForms,
    network_forms,
    with_corrected_biases,
)
from ansor.frontend.precision.reformed_network import with_forms
from ansor.run.check.deviation import squared_error

op = relax.op
Array = Any
RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((48, 40)).astype(np.float32)
KERNEL = RNG.standard_normal((16, 8, 3, 3)).astype(np.float32)


def network(shape: tuple[int, ...], body: Any) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(body(x))
        builder.emit_func_output(out)
    return optimize(builder.get(), TARGET)


def dense(x: Any) -> Any:
    bias = relax.const(RNG.standard_normal(40).astype(np.float32))
    return op.nn.gelu(op.add(op.matmul(op.nn.relu(x), relax.const(WEIGHT)), bias))


def convolution(x: Any) -> Any:
    bias = relax.const(RNG.standard_normal((1, 16, 1, 1)).astype(np.float32))
    return op.nn.relu(op.add(op.nn.conv2d(op.nn.relu(x), relax.const(KERNEL), padding=1), bias))


def rows(seed: int, shape: tuple[int, ...]) -> Array:
    """Rows that are nearly alike, so that rounded weights make nearly the same error in all."""
    rng = np.random.default_rng(seed)
    common = np.random.default_rng(3).standard_normal(shape[-1])
    return (np.broadcast_to(common, shape) + 0.05 * rng.standard_normal(shape)).astype(np.float32)


def images(seed: int, shape: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(np.moveaxis(rows(seed, (shape[0], *shape[2:], shape[1])), -1, 1))


def corrected(forms: NetworkForms, inputs: Array) -> NetworkForms:
    def run(mod: tvm.IRModule) -> list[Array]:
        found = compile_model(mod, TARGET)(inputs)
        return list(found) if isinstance(found, tuple) else [found]

    return with_corrected_biases(forms, run)


def result(forms: NetworkForms, inputs: Array) -> Array:
    short = with_forms(forms, forms.forms(forms.multiplying)).mod
    return compile_model(short, TARGET)(inputs)


@pytest.mark.parametrize(
    ("body", "shape", "make"),
    [(dense, (4, 32, 48), rows), (convolution, (1, 8, 14, 14), images)],
    ids=["dense", "convolution"],
)
def test_other_inputs_than_those_of_the_calibration_have_less_error(
    body: Any, shape: tuple[int, ...], make: Any
) -> None:
    mod = network(shape, body)
    forms = network_forms(mod, "bfloat16")
    calibration, inputs = make(1, shape), make(2, shape)
    expected = compile_model(mod, TARGET)(inputs)
    before = squared_error(expected, result(forms, inputs))
    after = squared_error(expected, result(corrected(forms, calibration), inputs))
    assert after < 0.7 * before


def test_the_correction_is_the_mean_of_what_the_weights_lose() -> None:
    mod = network((4, 32, 48), dense)
    forms = network_forms(mod, "bfloat16")
    x = rows(1, (4, 32, 48))
    ((number, (position, bias)),) = corrected(forms, x).biases.items()
    (own,) = (facts.biased for facts in forms.functions.values() if facts.biased is not None)
    assert position == own.bias
    lost = WEIGHT - WEIGHT.astype(ml_dtypes.bfloat16).astype(np.float32)
    mean = np.maximum(x, 0).reshape(-1, 48).mean(axis=0)
    original = corrected(forms, np.zeros_like(x)).biases[number][1]
    np.testing.assert_allclose(bias - original, mean @ lost, rtol=1e-3, atol=1e-6)


def test_a_product_without_a_bias_stays_as_it_is() -> None:
    forms = network_forms(network((4, 48), lambda x: op.matmul(x, relax.const(WEIGHT))), "bfloat16")
    assert not corrected(forms, rows(1, (4, 48))).biases


def test_a_difference_is_no_bias() -> None:
    def body(x: Any) -> Any:
        return op.subtract(op.matmul(x, relax.const(WEIGHT)), relax.const(WEIGHT[0, :40]))

    forms = network_forms(network((4, 48), body), "bfloat16")
    assert not corrected(forms, rows(1, (4, 48))).biases
