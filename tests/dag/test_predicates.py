"""The paper's predicates, by hand."""

from __future__ import annotations

import pytest
from definitions import dag
from tvm import te, topi

from ansor.dag import edit, predicates
from ansor.dag.from_tir.read import read_dag
from ansor.dag.graph import ComputeDAG
from ansor.workloads import build


def test_inlinable_in_a_convolution() -> None:
    graph = dag("conv2d")
    inlinable = {name: predicates.is_inlinable(graph, name) for name in graph.order}
    # padding has a branch, the convolution a reduction, the ReLU is the output
    assert inlinable == {"padded": False, "conv": False, "add": True, "compute": False}
    assert predicates.can_inline(graph, "padded")
    assert not predicates.can_inline(graph, "conv")


def test_a_special_function_is_not_repeated() -> None:
    graph = dag("softmax")
    assert not predicates.is_inlinable(graph, "T_softmax_exp")  # two consumers, one a reduction
    assert predicates.can_inline(graph, "T_softmax_exp")


def _chain(last_is_sum: bool) -> ComputeDAG:
    a = te.placeholder((8, 8), name="A")
    exp = topi.exp(topi.transpose(a))
    last = topi.sum(exp, axis=1) if last_is_sum else topi.nn.relu(exp)
    return read_dag(te.create_prim_func([a, last]))


def test_a_special_function_is_inlined_where_nothing_is_repeated() -> None:
    graph = _chain(last_is_sum=False)
    assert [predicates.is_inlinable(graph, name) for name in graph.order] == [True, True, False]


def test_a_special_function_before_a_reduction_stays() -> None:
    graph = _chain(last_is_sum=True)
    assert [predicates.is_inlinable(graph, name) for name in graph.order] == [True, False, False]


@pytest.mark.parametrize(
    ("name", "stage", "reuse"),
    [
        ("matmul", "C", True),
        ("conv2d", "conv", True),
        ("conv2d", "padded", False),
        ("conv2d", "compute", False),
        ("depthwise_conv2d", "conv", True),  # the weight leaves out both spatial axes
        ("softmax", "T_softmax_expsum", False),
        ("softmax", "T_softmax_norm", False),
        ("row_sum", "S", False),
        ("total_sum", "S", False),
        ("max_pool2d", "pool_max", False),
        ("global_average_pool2d", "adaptive_pool_sum", False),
    ],
)
def test_data_reuse(name: str, stage: str, reuse: bool) -> None:
    assert predicates.has_data_reuse(dag(name), stage) is reuse


@pytest.mark.parametrize(
    ("name", "stage", "consumer"),
    [
        ("matmul", "C", None),
        ("matmul_relu", "C", "compute"),
        ("conv2d", "conv", "add"),
        ("conv2d", "padded", None),  # read by windows
        ("softmax", "T_softmax_maxelem", None),  # two consumers
        ("softmax", "T_softmax_expsum", None),  # broadcast
    ],
)
def test_fusible_consumer(name: str, stage: str, consumer: str | None) -> None:
    assert predicates.fusible_consumer(dag(name), stage) == consumer


def test_the_consumer_is_fusible_through_an_inlined_stage() -> None:
    graph = edit.inline(dag("conv2d"), "add")
    assert predicates.fusible_consumer(graph, "conv") == "compute"


@pytest.mark.parametrize(
    ("name", "stage", "more"),
    [
        ("row_sum", "S", True),
        ("total_sum", "S", True),
        ("norm", "S", True),
        ("norm", "norm", False),
        ("matmul", "C", False),
        ("max_pool2d", "pool_max", False),  # 784 points are enough for two cores
        ("softmax", "T_softmax_maxelem", True),  # 16 rows of 60
        ("softmax", "T_softmax_exp", False),
    ],
)
def test_needs_more_parallelism(name: str, stage: str, more: bool) -> None:
    needed = predicates.needs_more_parallelism(dag(name), stage, cores=2, spatial_per_core=16)
    assert needed is more


def test_more_cores_need_more_parallelism() -> None:
    args = dag("softmax"), "T_softmax_maxelem"
    assert not predicates.needs_more_parallelism(*args, cores=2, spatial_per_core=8)
    assert predicates.needs_more_parallelism(*args, cores=4, spatial_per_core=8)


def test_a_factored_reduction_is_not_factored_again() -> None:
    graph = edit.rfactor(dag("row_sum"), "S", 1, "hole", "S.rf", inner=False)
    for stage in ("S", "S.rf"):
        assert not predicates.needs_more_parallelism(graph, stage, 2, 16)
        assert not predicates.has_data_reuse(graph, stage)


def test_axes_of_an_access_look_inside_quotients() -> None:
    a = te.placeholder((6, 8), name="A")
    flat = te.compute((48, 3), lambda i, j: a[i // 8, i % 8] + 1.0, name="flat")
    (read,) = read_dag(te.create_prim_func([a, flat])).stages["flat"].reads
    assert predicates.axes_of_access(read) == {0}


def test_a_reduction_shorter_than_the_space_around_it_is_not_split() -> None:
    graph = read_dag(build("row_sum", rows=20, columns=12).func)
    assert not predicates.needs_more_parallelism(graph, "S", cores=2, spatial_per_core=16)
    longer = read_dag(build("row_sum", rows=20, columns=24).func)
    assert predicates.needs_more_parallelism(longer, "S", cores=2, spatial_per_core=16)
