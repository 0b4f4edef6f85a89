"""How stages read their operands, on definitions whose answers are known."""

from __future__ import annotations

import pytest
from definitions import HARDWARE, dag
from tvm import te, topi

from ansor.config import SketchConfig
from ansor.dag import edit
from ansor.dag.from_tir import read_dag
from ansor.dag.operands import is_whole_along_vectors, reads_per_element, transposed_operand
from ansor.program.steps import MultiLevelTile
from ansor.sketch.rules import Context, inline_padding
from ansor.sketch.state import State


def test_reads_per_element_of_a_padded_image() -> None:
    """3 x 3 windows over 14 x 14 elements of 16 x 16."""
    found = reads_per_element(dag("depthwise_conv2d"), "conv", "padded")
    assert found == pytest.approx(9 * 14 * 14 / (16 * 16))
    assert reads_per_element(dag("conv2d"), "conv", "padded") == pytest.approx(
        9 * 8 * 8 * 8 * 16 / (10 * 10 * 8)
    )


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
        derived = inline_padding(state, Context(HARDWARE, SketchConfig()))
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
