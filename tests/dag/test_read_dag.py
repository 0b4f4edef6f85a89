"""Graphs of compute definitions: domains, accesses, FLOPs, keys; and what is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest
from definitions import NAMES, dag, workload
from tvm import te, tirx, topi
from tvm.script import tirx as T

from ansor.dag.from_tir.read import block_names, buffer_names, read_dag, written_params
from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import Access
from ansor.errors import UnsupportedError
from ansor.workloads import build

SPATIAL, REDUCE = False, True


def domain(graph: ComputeDAG, name: str) -> list[tuple[int, bool]]:
    return [(axis.size, axis.reduce) for axis in graph.stages[name].axes]


def texts(accesses: tuple[Access, ...]) -> list[str]:
    return [f"{a.buffer}[{', '.join(map(str, a.indices))}]" for a in accesses]


def test_matmul() -> None:
    graph = dag("matmul")
    assert domain(graph, "C") == [(32, SPATIAL), (48, SPATIAL), (24, REDUCE)]
    assert texts(graph.stages["C"].reads) == ["A[i0, i2]", "B[i2, i1]"]
    assert texts(graph.stages["C"].writes) == ["C[i0, i1]"]
    assert graph.flops == 2 * 32 * 48 * 24
    assert graph.is_output("C")


def test_strided_convolution() -> None:
    graph = dag("conv2d_stride2")
    assert graph.order == ("padded", "conv", "add", "compute")
    assert domain(graph, "padded") == [(1, SPATIAL), (17, SPATIAL), (15, SPATIAL), (6, SPATIAL)]
    assert domain(graph, "conv")[:4] == [(1, SPATIAL), (8, SPATIAL), (7, SPATIAL), (16, SPATIAL)]
    assert domain(graph, "conv")[4:] == [(3, REDUCE), (3, REDUCE), (6, REDUCE)]
    assert texts(graph.stages["padded"].reads) == ["data[i0, i1 + -1, i2 + -1, i3]"]
    assert texts(graph.stages["conv"].reads) == [
        "padded[i0, 2*i1 + i4, 2*i2 + i5, i6]",
        "weight[i4, i5, i6, i3]",
    ]
    assert graph.producers("add") == ("conv",)
    assert graph.consumers("conv") == ("add",)
    out = 8 * 7 * 16
    assert graph.flops == out * 3 * 3 * 6 * 2 + 2 * out  # and the bias, and the ReLU


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_are_the_outputs(name: str) -> None:
    func = workload(name).func
    own = list(buffer_names(func).values())[: len(func.params)]
    outputs = {i for i, buffer in enumerate(own) if dag(name).buffers[buffer].kind == "output"}
    assert written_params(func) == outputs != set()


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("batch_matmul", 2 * 3 * 8 * 16 * 12),
        ("conv1d", 2 * 14 * 16 * 3 * 8),
        ("conv2d", 8 * 8 * 16 * (2 * 9 * 8 + 2)),
        ("depthwise_conv2d", 2 * 14 * 14 * 16 * 9),
        # padding and dilation make it a stride-one convolution over zeros
        ("transposed_conv2d", 2 * 8 * 8 * 8 * 8 * 4 * 4),
        ("softmax", 16 * 60 * (1 + 2 + 1 + 1)),  # max; subtract, exp; sum; divide
        ("row_sum", 4 * 4096),
        ("total_sum", 4096),
        ("norm", 2 * 32 * 32 + 1),
        ("max_pool2d", 7 * 7 * 16 * 9),
        ("global_average_pool2d", 64 * (49 + 1)),
    ],
)
def test_flops_by_hand(name: str, flops: int) -> None:
    assert dag(name).flops == flops


@pytest.mark.parametrize("name", NAMES)
def test_every_definition_is_one_connected_graph_in_order(name: str) -> None:
    graph = dag(name)
    assert set(graph.order) == set(graph.stages) == set(block_names(workload(name).func))
    for consumer in graph.order:
        for producer in graph.producers(consumer):
            assert graph.order.index(producer) < graph.order.index(consumer)
    assert graph.is_output(graph.order[-1])


def test_branches_reducers_and_kinds() -> None:
    graph = dag("conv2d")
    assert [s.has_branch for s in graph.stages.values()] == [True, False, False, False]
    assert graph.stages["conv"].reducer == "Add"
    assert dag("max_pool2d").stages["pool_max"].reducer == "Max"
    kinds = {name: buffer.kind for name, buffer in graph.buffers.items()}
    assert kinds["data"] == "input"
    assert kinds["conv"] == "intermediate"
    assert kinds["compute"] == "output"


def test_quotients_and_remainders_of_a_reshape() -> None:
    a = te.placeholder((6, 8), name="A")
    flat = te.compute((48,), lambda i: a[i // 8, i % 8] + 1.0, name="flat")
    graph = read_dag(te.create_prim_func([a, flat]))
    assert texts(graph.stages["flat"].reads) == ["A[(i0) // 8, (i0) % 8]"]
    assert not graph.stages["flat"].reads[0].is_affine


def test_an_indirect_read_is_not_understood_but_kept() -> None:
    a, where = te.placeholder((8,), name="A"), te.placeholder((4,), "int32", name="where")
    out = te.compute((4,), lambda i: a[where[i]], name="out")
    reads = read_dag(te.create_prim_func([a, where, out])).stages["out"].reads
    assert Access("A", (None,)) in reads


def _best(operator: str) -> ComputeDAG:
    a = te.placeholder((8, 32), name="A")
    return read_dag(te.create_prim_func([a, getattr(topi, operator)(a, axis=1)]))


def test_a_reduction_of_tuples_reads_its_input() -> None:
    stage = _best("argmax").stages["A_red_temp"]
    assert texts(stage.reads) == ["A[i0, i1]"]
    assert texts(stage.writes) == ["A_red_temp.v0[i0]", "A_red_temp.v1[i0]"]
    assert stage.reducer is None
    assert stage.ops.select == 2
    assert stage.ops.float_cmp > 0


def test_reductions_of_tuples_have_keys_of_their_own() -> None:
    assert _best("argmax").key != _best("argmin").key


def _bits(name: str) -> ComputeDAG:
    a = te.placeholder((8, 8), "int32", name=name)
    out = te.compute((8, 8), lambda i, j: (a[i, j] << 2) ^ (a[j, i] & 3), name="bits")
    return read_dag(te.create_prim_func([a, out]))


def test_rare_operators_are_read_and_do_not_depend_on_names() -> None:
    assert _bits("one").key == _bits("other").key
    assert texts(_bits("A").stages["bits"].reads) == ["A[i0, i1]", "A[i1, i0]"]
    assert _bits("A").flops == 3 * 64


def test_the_graph_cannot_be_changed() -> None:
    with pytest.raises(Exception, match=r"[Ff]rozen"):
        dag("matmul").graph.add_node("more")


def test_show_names_stages_domains_and_flops() -> None:
    text = dag("matmul").show()
    assert "C(i=32 j=48 k~=24) <- A[i0, i2], B[i2, i1]" in text
    assert "73,728 FLOP" in text


# Keys


def _add(constant: float = 1.0, size: int = 8, dtype: str = "float32") -> ComputeDAG:
    a = te.placeholder((size,), dtype, name="A")
    one = tirx.const(constant, dtype)
    return read_dag(te.create_prim_func([a, te.compute((size,), lambda i: a[i] + one, name="B")]))


def _subtract() -> ComputeDAG:
    a = te.placeholder((8,), name="A")
    one = tirx.const(1.0, "float32")
    return read_dag(te.create_prim_func([a, te.compute((8,), lambda i: a[i] - one, name="B")]))


def test_equal_definitions_have_equal_keys() -> None:
    assert _add().key == _add().key
    assert len(_add().key) == 16


@pytest.mark.parametrize(
    "other",
    [lambda: _add(2.0), lambda: _add(size=9), lambda: _add(dtype="float64"), _subtract],
    ids=["constant", "size", "dtype", "operator"],
)
def test_the_key_differs(other) -> None:
    assert other().key != _add().key


def test_keys_of_all_definitions_differ() -> None:
    assert len({dag(name).key for name in NAMES}) == len(NAMES)


_PRINT_KEYS = """
import sys
from ansor.dag.from_tir.read import read_dag
from ansor.workloads import build
for name in sys.argv[1:]:
    print(read_dag(build(name).func).key)
"""


def test_keys_are_the_same_in_another_process() -> None:
    names = ["conv2d", "softmax", "matmul"]
    environment = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "12345"}
    command = [sys.executable, "-c", _PRINT_KEYS, *names]
    from_afar = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert from_afar.stdout.split() == [read_dag(build(name).func).key for name in names]


# What is refused


def _dynamic() -> tirx.PrimFunc:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    return te.create_prim_func([a, te.compute((n,), lambda i: a[i] + 1.0, name="B")])


@T.prim_func(s_tir=True)
def prefix_sum(A: T.Buffer((8,), "float32"), B: T.Buffer((9,), "float32")):
    for i in range(8):
        with T.sblock("prefix"):
            v = T.axis.spatial(8, i)
            B[v + 1] = B[v] + A[v]


@T.prim_func(s_tir=True)
def opaque(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("mystery"):
            v = T.axis.opaque(8, i)
            A[v] = 1.0


@T.prim_func(s_tir=True)
def scheduled(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i, j in T.grid(2, 4):
        with T.sblock("halves"):
            v = T.axis.spatial(8, i * 4 + j)
            B[v] = A[v]


@T.prim_func(s_tir=True)
def scalar(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), factor: T.float32):
    for i in range(8):
        with T.sblock("scaled"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * factor


@T.prim_func(s_tir=True)
def shared_loop(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("first"):
            v = T.axis.spatial(8, i)
            A[v] = 1.0
        with T.sblock("second"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]


@T.prim_func(s_tir=True)
def twice(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("double"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * 2.0
    for i in range(8):
        with T.sblock("again"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * 4.0


@T.prim_func(s_tir=True)
def in_place(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("double"):
            v = T.axis.spatial(8, i)
            A[v] = A[v] * 2.0


@T.prim_func(s_tir=True)
def guarded(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("half"):
            v = T.axis.spatial(8, i)
            T.where(i < 4)
            B[v] = A[v]


@T.prim_func(s_tir=True)
def parallel(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.parallel(8):
        with T.sblock("copy"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]


@T.prim_func(s_tir=True)
def tail(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(2, 8):
        with T.sblock("tail"):
            v = T.axis.spatial((2, 8), i)
            B[v] = A[v]


def _external() -> tirx.PrimFunc:
    a = te.placeholder((8,), name="A")
    call = te.extern((8,), [a], lambda i, o: tirx.call_packed("f", i[0], o[0]), name="foreign")
    return te.create_prim_func([a, call])


@pytest.mark.parametrize(
    ("func", "message"),
    [
        (_dynamic(), "block B.*not known at compile time"),
        (prefix_sum, "block prefix.*scan"),
        (opaque, "block mystery.*opaque"),
        (scheduled, "block halves.*already scheduled"),
        (scalar, "parameter factor is a scalar"),
        (shared_loop, "several statements"),
        (twice, "blocks double and again both write B"),
        (in_place, "block double: updates A in place"),
        (guarded, "block half: runs only where"),
        (parallel, "block copy: its loop over i is parallel"),
        (tail, "block tail: its loop over i starts at 2"),
        (_external(), "block foreign is opaque"),
    ],
    ids=[
        "dynamic",
        "scan",
        "opaque",
        "scheduled",
        "scalar",
        "shared-loop",
        "twice",
        "in-place",
        "guarded",
        "parallel",
        "tail",
        "external",
    ],
)
def test_bad_input_is_refused_by_name(func: tirx.PrimFunc, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        read_dag(func)
