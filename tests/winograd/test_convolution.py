"""Which stages convolve images, what their dimensions are, and how they are padded."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import te, tirx, topi

from ansor.dag.from_tir.read import read_dag
from ansor.dag.graph import ComputeDAG
from ansor.workloads.convolution_nd import ConvolutionSizes, convolution
from ansor.workloads.minimal_filtering.convolution import Convolution as Found
from ansor.workloads.minimal_filtering.convolution import Depth, convolution_of
from ansor.workloads.suite import suite_workload
from ansor.workloads.transposed import transposed_convolution


def graph(*tensors: Any) -> ComputeDAG:
    return read_dag(te.create_prim_func(list(tensors)))


def only(dag: ComputeDAG) -> Found:
    found = [conv for name in dag.order if (conv := convolution_of(dag, name)) is not None]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_channels_last(kernel: int, padding: int, stride: int, groups: int) -> None:
    sizes = ConvolutionSizes(2, (10, 12), 8, 16, kernel, stride, padding, groups=groups)
    found = convolution_of(read_dag(convolution("conv", sizes).func), "conv")
    assert found == Found(
        stage="conv",
        padded_by="padded" if padding else None,
        data="data",
        weight="weight",
        data_layout=(0, 1, 2, 3),
        weight_layout=(0, 1, 2, 3),
        out_layout=(0, 1, 2, 3),
        kernel=(kernel, kernel),
        stride=stride,
        dilation=1,
        padding=(padding,) * 4,
        groups=groups,
    )


def test_channels_first() -> None:
    data, weight = te.placeholder((1, 4, 9, 11), name="data"), te.placeholder((8, 4, 3, 3))
    found = only(graph(data, weight, topi.nn.conv2d_nchw(data, weight, 1, (1, 0, 2, 0), 1)))
    assert (found.data_layout, found.weight_layout) == ((0, 2, 3, 1), (2, 3, 1, 0))
    assert (found.out_layout, found.padding) == ((0, 2, 3, 1), (1, 0, 2, 0))


@pytest.mark.parametrize("dilation", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("stride", [1, 2])
def test_volumes(stride: int, kernel: int, dilation: int) -> None:
    sizes = ConvolutionSizes(2, (9, 10, 12), 8, 16, kernel, stride, 1, dilation)
    found = convolution_of(read_dag(convolution("conv", sizes).func), "conv")
    assert found is not None
    assert (found.data_layout, found.out_layout) == ((0, 1, 2, 3, 4),) * 2
    assert found.weight_layout == (0, 1, 2, 3, 4)
    assert (found.kernel, found.stride, found.padding) == ((kernel, kernel), stride, (1, 1, 1, 1))
    assert found.dilation == dilation
    assert found.depth == Depth(kernel, stride, found.dilation, (1, 1))


def test_volumes_with_channels_first_whose_depth_is_another() -> None:
    data = te.placeholder((1, 4, 9, 9, 11), name="data")
    weight = te.placeholder((8, 4, 2, 3, 3), name="weight")
    out = topi.nn.conv3d_ncdhw(data, weight, (3, 1, 1), (0, 1, 1, 2, 0, 0), (2, 1, 1), 1)
    found = only(graph(data, weight, out))
    assert (found.data_layout, found.out_layout) == ((0, 2, 3, 4, 1),) * 2
    assert found.weight_layout == (2, 3, 4, 1, 0)
    assert (found.kernel, found.stride, found.padding) == ((3, 3), 1, (1, 1, 0, 0))
    assert (found.dilation, found.depth) == (1, Depth(2, 3, 2, (0, 2)))


@pytest.mark.parametrize("dilation", [2, 3])
def test_dilated_ones(dilation: int) -> None:
    sizes = ConvolutionSizes(1, (12, 14), 8, 16, 3, 1, dilation, dilation)
    found = only(read_dag(convolution("conv", sizes).func))
    assert (found.kernel, found.dilation, found.depth) == ((3, 3), dilation, None)
    assert found.padding == (dilation,) * 4


def test_sides_dilated_in_different_ways_are_none() -> None:
    data, weight = te.placeholder((1, 9, 9, 4)), te.placeholder((3, 3, 4, 8))
    dag = graph(data, weight, topi.nn.conv2d_nhwc(data, weight, 1, 0, (1, 2)))
    assert not any(convolution_of(dag, name) for name in dag.order)


def test_a_transposed_one() -> None:
    workload = transposed_convolution("spread", 2, 10, 12, 8, 16, 4, 2, 1)
    found = convolution_of(read_dag(workload.func), "conv")
    assert found == Found(
        stage="conv",
        padded_by="padded",
        data="data",
        weight="weight",
        data_layout=(0, 1, 2, 3),
        weight_layout=(0, 1, 2, 3),
        out_layout=(0, 1, 2, 3),
        kernel=(4, 4),
        stride=2,
        dilation=1,
        padding=(1, 1, 1, 1),
        groups=1,
        is_transposed=True,
    )


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(4, 2, 0), (4, 2, 2), (6, 3, 1)])
def test_other_transposed_ones_are_none(kernel: int, stride: int, padding: int) -> None:
    func = transposed_convolution("spread", 1, 6, 6, 4, 4, kernel, stride, padding).func
    dag = read_dag(func)
    assert not any(convolution_of(dag, name) for name in dag.order)


def test_every_stage_of_a_chain() -> None:
    data = te.placeholder((1, 8, 8, 4), name="data")
    first, second = (te.placeholder((3, 3, 4, 4), name=name) for name in ("first", "second"))
    inner = topi.nn.conv2d_nhwc(data, first, 1, 1, 1)
    dag = graph(data, first, second, topi.nn.conv2d_nhwc(topi.nn.relu(inner), second, 1, 1, 1))
    found = [conv for name in dag.order if (conv := convolution_of(dag, name)) is not None]
    assert [conv.weight for conv in found] == ["first", "second"]
    assert [conv.data for conv in found] == ["data", "compute"]


@pytest.mark.parametrize("name", ["C1D.3", "GMM.0", "DEP.0", "CAP.1", "NRM.0"])
def test_others_are_none(name: str) -> None:
    dag = read_dag(suite_workload(name).func)
    assert not any(convolution_of(dag, stage) for stage in dag.order)


def padded(shape: tuple[int, ...], data: Any, value: Any) -> ComputeDAG:
    """A convolution whose data is a stage of this shape."""
    between = te.compute(shape, value, name="between")
    weight = te.placeholder((3, 3, 4, 4), name="weight")
    ry, rx, rc = (te.reduce_axis((0, size)) for size in (3, 3, 4))

    def point(n: Any, y: Any, x: Any, f: Any) -> Any:
        return te.sum(between[n, y + ry, x + rx, rc] * weight[ry, rx, rc, f], axis=[ry, rx, rc])

    return graph(data, weight, te.compute((1, 8, 8, 4), point, name="conv"))


def test_a_padding_with_holes_is_left_as_it_is() -> None:
    data = te.placeholder((1, 8, 8, 4), name="data")

    def inside(y: Any, x: Any) -> list[Any]:
        return [y >= 1, y < 9, x >= 1, x < 9]

    def value(n: Any, y: Any, x: Any, c: Any, *more: Any) -> Any:
        zero = tirx.const(0.0, "float32")
        return tirx.if_then_else(tirx.all(*inside(y, x), *more), data[n, y - 1, x - 1, c], zero)

    whole = only(padded((1, 10, 10, 4), data, value))
    assert (whole.data, whole.padding) == ("data", (1, 1, 1, 1))
    holes = only(padded((1, 10, 10, 4), data, lambda n, y, x, c: value(n, y, x, c, y != x)))
    assert (holes.data, holes.padding, holes.padded_by) == ("between", (0, 0, 0, 0), None)


@pytest.mark.parametrize("edge", ["cut", "ones", "channels"])
def test_what_is_not_only_zeros_around_is_left_as_it_is(edge: str) -> None:
    channels = 3 if edge == "channels" else 4
    data = te.placeholder((1, 8, 8, channels), name="data")
    first = 2 if edge == "cut" else 1  # a row that is not taken over

    def value(n: Any, y: Any, x: Any, c: Any) -> Any:
        bounds = [y >= first, y < 9, x >= 1, x < 9, c < channels]
        other = tirx.const(float(edge == "ones"), "float32")
        return tirx.if_then_else(tirx.all(*bounds), data[n, y - 1, x - 1, c], other)

    found = only(padded((1, 10, 10, 4), data, value))
    assert (found.data, found.padding) == ("between", (0, 0, 0, 0))
