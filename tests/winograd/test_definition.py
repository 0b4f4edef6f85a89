"""Minimal filtering inside of any compute definition: replaced stages and right results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, tirx, topi

from ansor.dag.from_tir.read import block_names, read_dag
from ansor.frontend.operator import import_operator
from ansor.frontend.variants import KINDS, operator_variants, with_variants
from ansor.workloads.convolution_nd import ConvolutionSizes, convolution, convolution_bn_relu
from ansor.workloads.minimal_filtering.filtered_definition import with_filtering
from ansor.workloads.minimal_filtering.transforms import (
    F2,
    F2_STRIDE2,
    F2_TRANSPOSED,
    F2_WIDE,
    F3,
    F4,
    F4_TRANSPOSED,
    F4_WIDE,
    Transform,
    is_nearly_whole,
)
from ansor.workloads.suite import suite_workload
from ansor.workloads.transposed import transposed_convolution

TRANSFORMS = {"2": F2, "3": F3, "4": F4, "2 by 2": F2_STRIDE2}
each_transform = pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS.keys())


def results(func: tirx.PrimFunc, seed: int = 0) -> list[Any]:
    """The results of an unchanged definition for random inputs."""
    rng = np.random.default_rng(seed)
    shapes = [tuple(map(int, param.shape)) for param in func.params]
    arrays = [tvm.runtime.tensor(rng.standard_normal(s).astype(np.float32)) for s in shapes]
    tvm.compile(func.with_attr("global_symbol", "main"), target="llvm")["main"](*arrays)
    return [array.numpy() for array in arrays]


def check(func: tirx.PrimFunc, transforms: Sequence[Transform]) -> tirx.PrimFunc:
    """Filters a definition and compares the results."""
    changed = with_filtering(func, transforms)
    assert changed is not func
    assert [tuple(p.shape) for p in changed.params] == [tuple(p.shape) for p in func.params]
    expected, found = results(func), results(changed)
    for one, other in zip(expected, found, strict=True):
        assert np.abs(other - one).max() <= 2e-5 * np.abs(one).max()
    assert not all(map(np.array_equal, expected, found))  # another algorithm
    return changed


def size_for(points: int, transform: Transform, padding: int) -> int:
    """Size of the data for a number of outputs."""
    return transform.stride * (points - 1) + 3 - 2 * padding


@each_transform
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("points", [8, 11])
def test_channels_last(points: int, padding: int, groups: int, transform: Transform) -> None:
    size = size_for(points, transform, padding)
    sizes = ConvolutionSizes(2, (size, size), 4, 6, 3, transform.stride, padding, groups=groups)
    changed = check(convolution("conv", sizes).func, [transform])
    assert "padded" not in block_names(changed)
    assert len({b.name for b in changed.body.block.alloc_buffers}) == len(
        {w.buffer for s in read_dag(changed).stages.values() for w in s.writes} - {"conv"}
    )


@each_transform
def test_channels_first(transform: Transform) -> None:
    size = size_for(8, transform, 1)
    data, weight = (te.placeholder(shape) for shape in ((1, 4, size, size), (6, 4, 3, 3)))
    out = topi.nn.conv2d_nchw(data, weight, transform.stride, 1, 1)
    check(te.create_prim_func([data, weight, out]), [transform])


@pytest.mark.parametrize("transform", [F2_WIDE, F4_WIDE], ids=["2", "4"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("points", "padding"), [(8, 2), (11, 0)])
def test_kernels_of_five_rows(points: int, padding: int, groups: int, transform: Transform) -> None:
    size = points + 4 - 2 * padding
    sizes = ConvolutionSizes(2, (size, size), 4, 6, 5, 1, padding, groups=groups)
    check(convolution("conv", sizes).func, [F2, transform])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unused", [0, 1])
@pytest.mark.parametrize(("points", "padding"), [(8, 0), (11, 2), (12, 3)])
@pytest.mark.parametrize(("kernel", "stride"), [(5, 2), (6, 2), (7, 2), (8, 2), (10, 4), (11, 4)])
def test_large_kernels_phase_by_phase(
    kernel: int, stride: int, points: int, padding: int, unused: int, kind: str
) -> None:
    size = stride * (points - 1) + kernel - 2 * padding + unused
    sizes = ConvolutionSizes(2, (size, size + stride), 3, 6, kernel, stride, padding)
    changed = check(convolution("conv", sizes).func, KINDS[kind])
    assert {"phases", "taps_apart"} <= set(block_names(changed))


@pytest.mark.parametrize("tile", ["2", "3", "4"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("points", "padding", "dilation"), [(8, 0, 2), (11, 1, 2), (12, 3, 2), (12, 3, 3)]
)
def test_dilated_ones(points: int, padding: int, dilation: int, groups: int, tile: str) -> None:
    size = points + 2 * dilation - 2 * padding
    sizes = ConvolutionSizes(2, (size, size), 4, 6, 3, 1, padding, dilation, groups)
    if is_nearly_whole([points] * 2, TRANSFORMS[tile], dilation):
        check(convolution("conv", sizes).func, [TRANSFORMS[tile]])
    else:
        assert (points, tile) != (8, "2")


@each_transform
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("depth", "padding"), [(4, 1), (5, 0), (6, 2)])
def test_volumes(depth: int, padding: int, groups: int, transform: Transform) -> None:
    size = size_for(11, transform, padding)
    sizes = ConvolutionSizes(
        2, (depth, size, size), 4, 6, 3, transform.stride, padding, groups=groups
    )
    changed = check(convolution("conv", sizes).func, [transform])
    assert "padded" not in block_names(changed)


@pytest.mark.parametrize("kind", KINDS)
def test_volumes_with_large_kernels(kind: str) -> None:
    sizes = ConvolutionSizes(1, (9, 29, 29), 3, 6, 7, 2, 3)
    check(convolution("conv", sizes).func, KINDS[kind])


@pytest.mark.parametrize("tile", ["2", "3", "4"])
def test_volumes_with_channels_first_whose_depth_is_another(tile: str) -> None:
    data = te.placeholder((1, 4, 11, 12, 12), name="data")
    weight = te.placeholder((8, 4, 2, 3, 3), name="weight")
    out = topi.nn.conv3d_ncdhw(data, weight, (3, 1, 1), (0, 1, 1, 2, 1, 1), (2, 1, 1), 1)
    check(te.create_prim_func([data, weight, out]), [TRANSFORMS[tile]])


@pytest.mark.parametrize("transform", [F2_TRANSPOSED, F4_TRANSPOSED], ids=["2", "4"])
@pytest.mark.parametrize(("padding", "sides"), [(1, (8, 8)), (1, (7, 8)), (3, (9, 10))])
def test_a_transposed_one(sides: tuple[int, int], padding: int, transform: Transform) -> None:
    workload = transposed_convolution("spread", 2, *sides, 4, 6, 4, 2, padding)
    changed = check(workload.func, [F2, transform])
    assert "padded" not in block_names(changed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(4, 2, 2), (2, 2, 1), (4, 1, 1)])
def test_other_transposed_ones_stay(kernel: int, stride: int, padding: int, kind: str) -> None:
    func = transposed_convolution("spread", 1, 8, 8, 4, 6, kernel, stride, padding).func
    assert with_filtering(func, KINDS[kind]) is func


@each_transform
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_with_more_stages_after_it(index_dtype: str, transform: Transform) -> None:
    sizes = ConvolutionSizes(1, (size_for(8, transform, 1),) * 2, 4, 6, 3, transform.stride, 1)
    tensors = list(convolution_bn_relu("cbr", sizes).tensors)
    func = te.create_prim_func(tensors, index_dtype_override=index_dtype)
    check(func, [transform])


def test_every_convolution_of_a_chain_under_names_of_its_own() -> None:
    data = te.placeholder((1, 8, 8, 4), name="data")
    first, second = (te.placeholder((3, 3, 4, 4), name=name) for name in ("first", "second"))
    inner = topi.nn.relu(topi.nn.conv2d_nhwc(data, first, 1, 1, 1))
    out = topi.nn.conv2d_nhwc(inner, second, 1, 1, 1)
    changed = check(te.create_prim_func([data, first, second, out]), [F2])
    names = block_names(changed)
    assert len(set(names)) == len(names)
    assert sum(name.startswith("product") for name in names) == 2


def test_padding_that_others_read_as_well_stays() -> None:
    data, weight = te.placeholder((1, 8, 8, 4), name="data"), te.placeholder((3, 3, 4, 4))
    around = topi.nn.pad(data, [0, 1, 1, 0], name="padded")
    conv = topi.nn.conv2d_nhwc(around, weight, 1, 0, 1)
    twice = te.compute(around.shape, lambda *i: around(*i) * 2.0, name="twice")
    changed = check(te.create_prim_func([data, weight, conv, twice]), [F2])
    assert "padded" in block_names(changed)


@pytest.mark.parametrize(
    "sizes",
    [
        ConvolutionSizes(1, (8, 8), 4, 4, 3, 3, 1),
        ConvolutionSizes(1, (12, 12), 4, 4, 3, 2, 2, dilation=2),
        ConvolutionSizes(1, (5, 5), 4, 4, 3, 1, 2, dilation=2),
        ConvolutionSizes(1, (8, 8), 4, 4, 7, 1, 3),
        ConvolutionSizes(1, (17, 17), 4, 4, 7, 2, 3, groups=2),
        ConvolutionSizes(1, (5, 5), 4, 4, 3, 1, 1),  # too many points in vain
        ConvolutionSizes(1, (8, 8), 4, 4, 3, 1, 1, dtype="float16"),
        ConvolutionSizes(1, (8,), 4, 4, 3, 1, 1),
    ],
    ids=[
        "stride",
        "both",
        "waste of phases",
        "kernel",
        "groups of phases",
        "waste",
        "dtype",
        "line",
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_other_definitions_stay_as_they_are(kind: str, sizes: ConvolutionSizes) -> None:
    func = convolution("conv", sizes).func
    assert with_filtering(func, KINDS[kind]) is func


def test_the_kinds_that_an_operator_has() -> None:
    def kinds(name: str, *allowed: str) -> dict[str, str]:
        mod = import_operator(suite_workload(name).func)
        found = operator_variants(mod, allowed or tuple(KINDS))
        assert all(v.replaces == "operator" and v.weight is None for v in found)
        return {v.kind: v.function.name for v in found}

    assert list(kinds("C2D.2")) == ["winograd2", "winograd3", "winograd4"]
    assert list(kinds("C2D.3")) == ["winograd2", "winograd4"]  # 7×7 would be 9×9
    assert kinds("C2D.2", "winograd4") == {"winograd4": "operator_winograd4"}
    assert list(kinds("C2D.0")) == ["winograd2", "winograd3", "winograd4"]  # 7×7, stride 2
    assert list(kinds("GRP.0")) == ["winograd2"]  # stride 2
    assert list(kinds("DIL.2")) == ["winograd2", "winograd3"]  # 12×12, each of four phases 6×6
    assert list(kinds("C3D.2")) == ["winograd2", "winograd3", "winograd4"]
    assert not kinds("DIL.3")  # 5×5
    assert list(kinds("T2D.1")) == ["winograd2", "winograd4"]
    assert not kinds("C2D.1")
    assert not kinds("GMM.0")


def test_a_chosen_variant_is_called_with_the_operators_arguments() -> None:
    sizes = ConvolutionSizes(1, (8, 8), 4, 6, 3, 1, 1)
    mod = import_operator(convolution("conv", sizes).func)
    (chosen,) = operator_variants(mod, ["winograd2"])
    changed = with_variants(mod, {"operator": chosen})
    calls = [b.value for block in changed["main"].body.blocks for b in block.bindings]
    assert [str(call.args[0].name_hint) for call in calls] == ["operator_winograd2"]
