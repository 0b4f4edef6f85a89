"""Inlining, caching and factoring keep the meaning of a definition."""

from __future__ import annotations

import itertools

import pytest
from definitions import dag
from test_index import evaluate

from ansor.dag import edit, operands
from ansor.dag.graph import ComputeDAG
from ansor.dag.predicates import fusible_consumer
from ansor.dag.stage import HoleExtent


def texts(graph: ComputeDAG, stage: str) -> list[str]:
    return [f"{r.buffer}[{', '.join(map(str, r.indices))}]" for r in graph.stages[stage].reads]


def test_inline_moves_the_reads_and_the_work() -> None:
    before = dag("conv2d")
    after = edit.inline(before, "add")
    assert after.order == ("padded", "conv", "compute")
    assert texts(after, "compute") == ["conv[i0, i1, i2, i3]", "bias[i3]"]
    assert after.flops == before.flops
    assert "add" not in after.buffers
    assert "add" in before.stages


def test_inline_composes_the_indices() -> None:
    graph = edit.inline(dag("conv2d_stride2"), "padded")
    assert texts(graph, "conv")[0] == "data[i0, 2*i1 + i4 + -1, 2*i2 + i5 + -1, i6]"
    assert graph.stages["conv"].has_branch


def test_inlining_everything_into_softmax_keeps_one_read_of_each() -> None:
    graph = edit.inline(dag("softmax"), "T_softmax_exp")
    assert texts(graph, "T_softmax_expsum") == ["A[i0, i1]", "T_softmax_maxelem[i0]"]
    assert graph.stages["T_softmax_norm"].ops.float_special == 1


def test_cache_write_adds_a_copy_at_the_end() -> None:
    before = dag("matmul")
    after = edit.cache_write(before, "C", "C.cache")
    assert after.order == ("C", "C.cache")
    assert texts(after, "C.cache") == ["C.cache[i0, i1]"]
    assert after.stages["C.cache"].writes == before.stages["C"].writes
    assert not after.is_output("C")
    assert after.is_output("C.cache")
    assert after.flops == before.flops
    assert after.buffers["C.cache"].kind == "intermediate"
    assert after.buffers["C"].kind == "output"


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize(("name", "stage", "axis"), [("row_sum", "S", 1), ("norm", "S", 2)])
def test_rfactor_reads_the_same_points(name: str, stage: str, axis: int, inner: bool) -> None:
    """For every point of the factored axis, the partial stage has the reads of the original
    stage."""
    before = dag(name).stages[stage]
    after = edit.rfactor(dag(name), stage, axis, "hole", "part", inner=inner)
    part = after.stages["part"]
    outer, inside = 4, before.axes[axis].size // 4
    factors = (outer, inside)
    derived = part.derived[0]
    sizes = {derived.outer: outer, derived.inner: inside}
    for position, size in sizes.items():
        assert part.axes[position].extent == HoleExtent("hole", factors.index(size))
    seen = set()
    for i, j in itertools.product(range(outer), range(0, inside, 97)):
        point = [0] * len(part.axes) + [i * inside + j]
        point[derived.outer], point[derived.inner] = i, j
        seen.add(tuple(evaluate(index, point) for index in part.reads[0].indices))
    whole = [0] * len(before.axes)
    expected = set()
    for value in (i * inside + j for i in range(outer) for j in range(0, inside, 97)):
        whole[axis] = value
        expected.add(tuple(evaluate(index, whole) for index in before.reads[0].indices))
    assert seen == expected


@pytest.mark.parametrize("inner", [False, True])
def test_rfactor_makes_the_new_axis_first_or_last(inner: bool) -> None:
    graph = edit.rfactor(dag("row_sum"), "S", 1, "hole", "S.rf", inner=inner)
    part, final = graph.stages["S.rf"], graph.stages["S"]
    new = part.spatial[-1 if inner else 0]
    assert part.axes[new].extent == HoleExtent("hole", 1 if inner else 0)
    assert graph.buffers["S.rf"].shape[new] == part.axes[new].extent
    assert [axis.reduce for axis in final.axes] == [False, True]
    assert texts(graph, "S") == ["S.rf[i0, i1]" if inner else "S.rf[i1, i0]"]
    assert final.writes == dag("row_sum").stages["S"].writes
    assert graph.order == ("S.rf", "S")


def test_a_hole_has_no_size_yet() -> None:
    graph = edit.rfactor(dag("row_sum"), "S", 1, "hole", "S.rf", inner=False)
    with pytest.raises(TypeError, match="hole"):
        _ = graph.stages["S.rf"].axes[0].size


def test_a_split_axis_gives_each_phase_its_own_elements() -> None:
    before = dag("phases")
    (axis, turn), *_ = operands.phases(before, "conv").items()
    assert operands.phases(before, "conv") == {1: 2, 2: 2}
    after = edit.split_axis(before, "conv", axis, turn)
    assert texts(after, "conv") == [
        "padded[i0, i1 + i5 + (i2 + 1) // 2, i6 + (i3 + 1) // 2, i7]",
        "weight[-2*i5 + (i2 + 1) % 2 + 2, -2*i6 + (i3 + 1) % 2 + 2, i7, i4]",
    ]
    assert [str(i) for i in after.stages["conv"].writes[0].indices] == [
        "i0",
        "2*i1 + i2",
        "i3",
        "i4",
    ]
    assert operands.phases(after, "conv") == {3: 2}, "no axis is split twice"
    assert after.flops == before.flops


def test_a_split_axis_reaches_the_consumer_through_the_buffer() -> None:
    after = edit.split_axis(dag("phases_relu"), "conv", 1, 2, "relu")
    assert after.buffers["conv"].shape == (1, 4, 2, 6, 16)
    assert texts(after, "relu") == ["conv[i0, i1, i2, i3, i4]"]
    assert [str(i) for i in after.stages["relu"].writes[0].indices] == [
        "i0",
        "2*i1 + i2",
        "i3",
        "i4",
    ]
    assert fusible_consumer(after, "conv") == "relu"
    assert fusible_consumer(dag("phases_relu"), "conv") == "relu"


def test_only_what_repeats_has_phases() -> None:
    for name in ("conv2d_stride2", "matmul", "softmax", "winograd_conv2d"):
        graph = dag(name)
        assert not any(operands.phases(graph, stage) for stage in graph.order)


def test_a_moved_axis_is_last_in_both_stages_and_between_them() -> None:
    before = edit.cache_write(dag("channels_first"), "conv", "conv.cache")
    assert operands.other_vector_axis(before, "conv", 16) == 1, "the filters"
    after = edit.move_axis(before, "conv", 1, "conv.cache")
    assert [axis.name for axis in after.stages["conv"].axes] == [
        "n",
        "y",
        "x",
        "f",
        "rc",
        "ry",
        "rx",
    ]
    assert texts(after, "conv") == ["data[i0, i4, 2*i1 + i5, 2*i2 + i6]", "weight[i3, i4, i5, i6]"]
    assert after.buffers["conv.cache"].shape == (2, 8, 8, 16)
    assert texts(after, "conv.cache") == ["conv.cache[i0, i1, i2, i3]"]
    assert [str(i) for i in after.stages["conv.cache"].writes[0].indices] == [
        "i0",
        "i3",
        "i1",
        "i2",
    ]
    assert fusible_consumer(after, "conv") == "conv.cache"


def test_a_stride_along_the_last_axis_jumps() -> None:
    assert operands.jumps_along_vectors(dag("channels_first"), "conv")
    for name, stage in (("dense", "C"), ("conv2d_stride2", "conv"), ("phases", "conv")):
        assert not operands.jumps_along_vectors(dag(name), stage)


def test_only_an_axis_of_one_input_that_fills_vectors_may_be_moved() -> None:
    assert operands.other_vector_axis(dag("channels_first"), "conv", 16) == 1
    assert operands.other_vector_axis(dag("channels_first"), "conv", 32) is None, "16 filters"
    assert operands.other_vector_axis(dag("conv2d"), "conv", 4) is None, "rows of a padded image"
    assert operands.other_vector_axis(dag("dense"), "C", 8) == 0, "the rows of the left operand"


def test_an_axis_along_which_windows_slide_may_be_moved_where_that_is_asked_for() -> None:
    few = dag("few_filters")
    assert operands.other_vector_axis(few, "conv", 16) is None
    assert operands.other_vector_axis(few, "conv", 16, windows=True) == 2, "a padded image's rows"
    assert operands.other_vector_axis(few, "conv", 32, windows=True) is None, "16 points"
    assert operands.other_vector_axis(dag("phases_few"), "conv", 16, windows=True) is None
    strided = dag("conv2d_stride2")
    assert strided.stages["conv"].axes[1].size == 8
    assert operands.other_vector_axis(strided, "conv", 8, windows=True) is None, "every other row"
