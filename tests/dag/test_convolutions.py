"""Recognition of depthwise and pointwise convolutions."""

from __future__ import annotations

import pytest
from definitions import dag

from ansor.dag.convolutions import is_depthwise, is_pointwise
from ansor.dag.from_tir.read import read_dag
from ansor.dag.graph import ComputeDAG
from ansor.workloads import build


def conv2d(kernel: int, stride: int = 1) -> ComputeDAG:
    padding = kernel // 2
    sizes = {"height": 8, "width": 8, "channels": 8, "filters": 16}
    return read_dag(build("conv2d", kernel=kernel, stride=stride, padding=padding, **sizes).func)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("depthwise_conv2d", True),
        ("conv2d", False),  # each filter reads all channels
        ("matmul", False),
        ("max_pool2d", False),  # keeps to a channel, but reuses nothing
        ("global_average_pool2d", False),
        ("separable_conv2d", False),  # two reductions
        ("norm", False),
    ],
)
def test_depthwise_graphs(name: str, expected: bool) -> None:
    assert is_depthwise(dag(name)) is expected


def test_pointwise_graphs() -> None:
    assert is_pointwise(conv2d(1), "data")
    assert not is_pointwise(conv2d(1), "weight")
    assert not is_pointwise(conv2d(3), "data")  # neighbours as well
    assert not is_pointwise(dag("depthwise_conv2d"), "data")
    assert is_pointwise(dag("matmul_relu"), "A")
    assert not is_pointwise(dag("matmul_relu"), "B")
    assert not is_pointwise(dag("row_sum"), "data")  # nothing is multiplied
