"""How stages read their operands, on definitions whose answers are known."""

from __future__ import annotations

import pytest
from definitions import HARDWARE, dag
from tvm import te, topi

from ansor.config import SketchConfig
from ansor.dag.from_tir import read_dag
from ansor.dag.operands import is_whole_along_vectors, reads_per_element
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
