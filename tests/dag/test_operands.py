"""How stages read their operands, on definitions whose answers are known."""

from __future__ import annotations

from typing import Any

import pytest
from definitions import HARDWARE, dag
from tvm import te, topi

from ansor.config import SketchConfig
from ansor.dag import edit
from ansor.dag.from_tir.read import read_dag
from ansor.dag.operands import (
    is_whole_along_vectors,
    reads_per_element,
    transposed_axes,
    transposed_operand,
)
from ansor.dag.padding import is_padded
from ansor.program.steps import MultiLevelTile
from ansor.sketch.rule import RuleContext
from ansor.sketch.rules import inline_padding
from ansor.sketch.state import State


def test_reads_per_element_of_a_padded_image() -> None:
    """3 x 3 windows over 14 x 14 elements of 16 x 16."""
    found = reads_per_element(dag("depthwise_conv2d"), "conv", "padded")
    assert found == pytest.approx(9 * 14 * 14 / (16 * 16))
    assert reads_per_element(dag("conv2d"), "conv", "padded") == pytest.approx(
        9 * 8 * 8 * 8 * 16 / (10 * 10 * 8)
    )


def test_what_pads_is_told_from_inputs_and_from_what_computes() -> None:
    graph = dag("conv2d")
    assert is_padded(graph, "padded")
    assert not any(is_padded(graph, name) for name in graph.buffers if name != "padded")


@pytest.mark.parametrize(("margins", "whole"), [((0, 1, 1, 0), True), ((0, 0, 0, 1), False)])
def test_padding_along_the_vectors_is_told_apart(margins: tuple[int, ...], whole: bool) -> None:
    data = te.placeholder((1, 8, 8, 16), name="data")
    padded = topi.nn.pad(data, margins, name="padded")
    k = te.reduce_axis((0, 1), name="k")
    shape = tuple(int(size) for size in padded.shape)
    out = te.compute(
        shape, lambda n, y, x, c: te.sum(padded[n, y, x, c] + k.var * 0.0, axis=k), name="out"
    )
    graph = read_dag(te.create_prim_func([data, out]))
    assert is_whole_along_vectors(graph, "out", "padded") == whole


def test_padding_is_inlined_into_tiles_only_where_it_is_read_a_few_times() -> None:
    for name, expected in (("depthwise_conv2d", True), ("conv2d", False)):
        step = MultiLevelTile("conv", "SSRSRS", ())
        state = State(dag(name), ("padded",), (step,))
        derived = inline_padding(state, RuleContext(HARDWARE, SketchConfig()))
        assert bool(derived.states) == expected


def test_an_operand_read_against_memory_is_found() -> None:
    assert transposed_operand(dag("dense"), "C") == ("B", (1, 0))
    assert transposed_operand(dag("matmul"), "C") is None
    assert transposed_operand(dag("batch_matmul"), "C") is None
    assert transposed_operand(dag("conv2d"), "conv") is None


def test_a_transposed_copy_has_its_dimensions_in_the_new_order() -> None:
    graph = edit.cache_read(dag("dense"), "C", "B", "C.B.pack", (1, 0))
    assert graph.buffers["C.B.pack"].shape == (12, 32)  # depth, columns
    copy = graph.stages["C.B.pack"]
    assert [axis.size for axis in copy.axes] == [12, 32]
    assert [str(index) for index in copy.reads[0].indices] == ["i1", "i0"]
    assert [str(index) for index in copy.writes[0].indices] == ["i0", "i1"]
    (read,) = (r for r in graph.stages["C"].reads if r.buffer == "C.B.pack")
    assert [str(index) for index in read.indices] == ["i2", "i1"]  # k, j


@pytest.mark.parametrize(
    ("value", "axes"),
    [
        (lambda x, i, j: x[j, i], (0, 1)),
        (lambda x, i, j: x[i, j], None),  # nothing is transposed
        (lambda x, i, j: x[j + 1, i], None),  # squares begin where vectors do
        (lambda x, i, j: x[j, i] + 1, None),
        (lambda x, i, j: x[j, i].astype("float64"), None),
    ],
)
def test_what_only_transposes_is_recognised(value: Any, axes: tuple[int, int] | None) -> None:
    x = te.placeholder((40, 40), "float32", "x")
    turned = te.compute((32, 32), lambda i, j: value(x, i, j), "turned")
    out = te.compute((32, 32), lambda i, j: turned[i, j] * 2, "out")
    assert transposed_axes(read_dag(te.create_prim_func([x, out])), "turned") == axes
