"""Other definitions of a network's convolutions: found, put in place, and right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.target import Target

from ansor.frontend import ImportedModel, compile_model
from ansor.frontend.distinct_functions import extract_functions, tir_calls
from ansor.frontend.optimization import optimize
from ansor.frontend.passes.winograd_convolution import with_winograd
from ansor.frontend.variants import KINDS, optimize_with_variants, with_variants
from ansor.workloads.minimal_filtering.transforms import F2, F2_STRIDE2, F3, F4, Transform


def convolution(
    size: int = 8,
    channels: int = 4,
    strides: int = 1,
    dilation: int = 1,
    groups: int = 1,
    kernel: int = 3,
    padding: int = 1,
    constant: bool = True,
    dtype: str = "float32",
) -> tvm.IRModule:
    """One channels-last convolution."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, size, size, channels), dtype))
    shape = (kernel, kernel, channels // groups, 8)
    values = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    weight = (
        relax.const(values, dtype) if constant else relax.Var("w", relax.TensorType(shape, dtype))
    )
    with builder.function("main", [x] if constant else [x, weight]):
        with builder.dataflow():
            conv = relax.op.nn.conv2d(x, weight, strides, padding, dilation, groups, "NHWC", "HWIO")
            out = builder.emit_output(builder.normalize(conv))
        builder.emit_func_output(out)
    return builder.get()


@pytest.mark.parametrize("tile", [2, 3, 4])
@pytest.mark.parametrize(
    "other",
    [
        {"strides": 3},
        {"dilation": 2, "padding": 2, "strides": 2},
        {"groups": 2},
        {"kernel": 7, "padding": 3},
        {"size": 5},
        {"constant": False},
        {"dtype": "float64"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_other_convolutions_stay_as_they_are(other: dict[str, object], tile: int) -> None:
    mod = convolution(**other)  # type: ignore[arg-type]
    assert with_winograd(mod, KINDS[f"winograd{tile}"]) is mod


@pytest.mark.parametrize("points", [8, 11])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("transform", [F2, F3, F4, F2_STRIDE2], ids=["2", "3", "4", "2 by 2"])
@pytest.mark.parametrize("unused", [0, 1])
def test_a_convolution_without_anything_after_it(
    unused: int, padding: int, points: int, transform: Transform, target: Target
) -> None:
    size = transform.stride * (points - 1) + 3 - 2 * padding + unused * (transform.stride - 1)
    mod = convolution(size=size, padding=padding, strides=transform.stride)
    other = with_winograd(mod, [transform])
    assert other is not mod
    x = np.random.default_rng(1).standard_normal((1, size, size, 4))
    plain, changed = (
        compile_model(optimize(m, target), target)(x.astype(np.float32)) for m in (mod, other)
    )
    assert not np.array_equal(plain, changed)
    assert np.abs(plain - changed).max() <= 1e-5 * np.abs(plain).max()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("kernel", "stride"), [(5, 2), (7, 2), (11, 4)])
def test_a_large_kernel_with_a_stride(kernel: int, stride: int, kind: str, target: Target) -> None:
    size = stride * 11 + kernel - 4
    mod = convolution(size=size, channels=3, strides=stride, kernel=kernel, padding=2)
    fused, (variant,) = optimize_with_variants(mod, target, [kind])
    changed = with_variants(fused, {variant.replaces: variant})
    x = np.random.default_rng(1).standard_normal((1, size, size, 3)).astype(np.float32)
    expected, found = (compile_model(m, target)(x) for m in (fused, changed))
    assert expected.shape == (1, 12, 12, 8)
    assert not np.array_equal(found, expected)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def check(mod: tvm.IRModule, kind: str, target: Target, *shape: int) -> None:
    """Compares a network of one convolution with its variant."""
    fused, (variant,) = optimize_with_variants(mod, target, [kind])
    changed = with_variants(fused, {variant.replaces: variant})
    x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    expected, found = (compile_model(m, target)(x) for m in (fused, changed))
    assert not np.array_equal(found, expected)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dilation", [2, 3])
def test_a_dilated_convolution(dilation: int, kind: str, target: Target) -> None:
    size = 24 if kind == "winograd4" else 12 if kind == "winograd2" else 18
    mod = convolution(size=size, dilation=dilation, padding=dilation)
    check(mod, kind, target, 1, size, size, 4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("strides", "dilation"), [(1, 1), (2, 1), ((2, 1, 1), (2, 1, 1))])
def test_a_convolution_of_volumes(strides: Any, dilation: Any, kind: str, target: Target) -> None:
    if strides == 2 and kind != "winograd2":
        return
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 4, 7, 24, 24), "float32"))
    rng = np.random.default_rng(0)
    weight = relax.const(rng.standard_normal((8, 4, 3, 3, 3), dtype=np.float32))
    with builder.function("main", [x]):
        with builder.dataflow():
            conv = relax.op.nn.conv3d(x, weight, strides, (1, 1, 1), dilation)
            out = builder.emit_output(builder.normalize(relax.op.nn.relu(conv)))
        builder.emit_func_output(out)
    check(builder.get(), kind, target, 1, 4, 7, 24, 24)


@pytest.mark.parametrize("kind", ["winograd2", "winograd4"])
def test_a_transposed_convolution(kind: str, target: Target) -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 4, 7, 8), "float32"))
    rng = np.random.default_rng(0)
    weight = relax.const(rng.standard_normal((4, 6, 4, 4), dtype=np.float32))
    with builder.function("main", [x]):
        with builder.dataflow():
            spread = relax.op.nn.conv2d_transpose(x, weight, 2, 1)
            out = builder.emit_output(builder.normalize(relax.op.nn.relu(spread)))
        builder.emit_func_output(out)
    fused, variants = optimize_with_variants(builder.get(), target, [kind])
    (variant,) = variants
    changed = with_variants(fused, {variant.replaces: variant})
    data = rng.standard_normal((1, 4, 7, 8), dtype=np.float32)
    expected, found = (compile_model(mod, target)(data) for mod in (fused, changed))
    assert expected.shape == (1, 6, 14, 16)
    assert not np.array_equal(found, expected)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def test_the_plain_form_is_what_optimize_makes(imported: ImportedModel, target: Target) -> None:
    fused, variants = optimize_with_variants(imported.mod, target)
    plain = [f.name for f in extract_functions(optimize(imported.mod, target))]
    assert [f.name for f in extract_functions(fused)] == plain
    assert {v.replaces for v in variants} <= set(plain)
    assert {v.kind for v in variants} == set(KINDS)
    names = [v.function.name for v in variants]
    assert len({*names, *plain}) == len(names) + len(plain)


def test_only_allowed_kinds_are_made(imported: ImportedModel, target: Target) -> None:
    _, variants = optimize_with_variants(imported.mod, target, ["winograd2"])
    assert {v.kind for v in variants} == {"winograd2"}
    assert optimize_with_variants(imported.mod, target, [])[1] == ()


def test_a_variant_has_the_calls_and_weights_of_what_it_replaces(
    imported: ImportedModel, target: Target
) -> None:
    fused, variants = optimize_with_variants(imported.mod, target)
    plain = {f.name: f for f in extract_functions(fused)}
    for variant in variants:
        replaced, function = plain[variant.replaces], variant.function
        assert function.weight == replaced.weight
        assert function.constants == replaced.constants
        assert variant.weight is not None
        assert variant.weight.position in function.constants
        shapes = [[tuple(map(int, p.shape)) for p in f.func.params] for f in (replaced, function)]
        differing = [i for i, (a, b) in enumerate(zip(*shapes, strict=True)) if a != b]
        assert differing == [variant.weight.position]


@pytest.mark.parametrize("kind", KINDS)
def test_a_network_of_variants_computes_the_same(
    kind: str, imported: ImportedModel, target: Target
) -> None:
    fused, variants = optimize_with_variants(imported.mod, target)
    chosen = {v.replaces: v for v in variants if v.kind == kind}
    changed = with_variants(fused, chosen)
    called = {str(call.args[0].name_hint) for call in tir_calls(changed)}
    assert called.isdisjoint(chosen)
    assert called >= {v.function.name for v in chosen.values()}
    x = np.random.default_rng(1).standard_normal((1, 3, 32, 32)).astype(np.float32)
    expected, found = (compile_model(mod, target)(x) for mod in (fused, changed))
    assert not np.array_equal(found, expected)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def test_without_a_choice_the_module_stays(imported: ImportedModel, target: Target) -> None:
    fused, _ = optimize_with_variants(imported.mod, target)
    assert with_variants(fused, {}) is fused
