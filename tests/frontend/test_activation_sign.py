"""Activations in the dtype that a target multiplies by `int8`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm.target import Target

from ansor.frontend import compile_model, extract_functions, import_model, optimize
from ansor.frontend.passes.integer.form import integer_form
from ansor.frontend.rewrite import op_name
from ansor.targets.cpu.low_precision import activations

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnxruntime.quantization import QuantType

from tests.frontend.quantized_networks import (
    quantized,
    residual_network,
    run_in_onnxruntime,
    transformer,
    with_every_integer,
)

NETWORKS: dict[str, Callable[[], Any]] = {"residual": residual_network, "transformer": transformer}
TYPES = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}
HASWELL = Target({"kind": "llvm", "mcpu": "haswell"})


def model_of(name: str, dtype: str, folder: Path, **settings: Any) -> Any:
    return quantized(NETWORKS[name](), folder, activation_type=TYPES[dtype], **settings)


def left_operands(mod: tvm.IRModule) -> set[str]:
    """Dtypes of what products and convolutions multiply by weights."""
    calls = [b.value for block in mod["main"].body.blocks for b in block.bindings]
    anchors = ("relax.matmul", "relax.nn.conv2d")
    return {str(call.args[0].ty.dtype) for call in calls if op_name(call) in anchors}


@pytest.mark.parametrize("wanted", TYPES)
@pytest.mark.parametrize("given", TYPES)
@pytest.mark.parametrize("name", NETWORKS)
def test_every_product_has_the_wanted_activations(
    name: str, given: str, wanted: str, tmp_path: Path
) -> None:
    mod = import_model(model_of(name, given, tmp_path)).mod
    assert left_operands(integer_form(mod)) == {given}
    assert left_operands(integer_form(mod, wanted)) == {wanted}


@pytest.mark.parametrize(("name", "symmetric"), [("residual", False), ("transformer", True)])
def test_results_are_the_same(name: str, symmetric: bool, tmp_path: Path) -> None:
    options = {"ActivationSymmetric": symmetric}
    model = with_every_integer(model_of(name, "int8", tmp_path, extra_options=options))
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    found = compile_model(optimize(import_model(model).mod, HASWELL), HASWELL)(x)
    for ours, expected in zip(found, run_in_onnxruntime(model, x), strict=True):
        if expected.dtype.kind in "iu":
            assert ours.dtype == expected.dtype
            assert np.mean(np.abs(ours.astype(np.int32) - expected) > 1) <= 1e-3


def test_no_function_only_converts(tmp_path: Path) -> None:
    counts = [
        len(extract_functions(optimize(import_model(model).mod, HASWELL)))
        for model in (model_of("residual", dtype, tmp_path) for dtype in TYPES)
    ]
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("processor", "expected"),
    [("nehalem", None), ("haswell", "uint8"), ("skylake-avx512", "uint8"), ("znver4", "uint8")],
)
def test_what_a_processor_multiplies(processor: str, expected: str | None) -> None:
    assert activations(Target({"kind": "llvm", "mcpu": processor})) == expected
