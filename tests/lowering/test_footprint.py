"""Rows that nested loops touch: exactly those elements, each once, or no rows."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

from fetching import addresses
from hypothesis import given
from hypothesis import strategies as st
from tvm import tirx

from ansor.lowering.prefetch.emit import turn_for
from ansor.lowering.prefetch.footprint import Slab, slab_of

SIZE = 1 << 20
LINE_BYTES = 64
LINE = LINE_BYTES // 4

loops_and_steps = st.lists(
    st.tuples(st.integers(2, 6), st.sampled_from([0, 1, 2, 3, 4, 6, 12, 24, 64, 96])),
    min_size=1,
    max_size=4,
)


def touched(shape: list[tuple[int, int]], first: int) -> list[int]:
    """Elements, for each iteration of loops of these extents and steps."""
    turns = product(*(range(extent) for extent, _ in shape))
    steps = [step for _, step in shape]
    return [first + sum(i * step for i, step in zip(turn, steps, strict=True)) for turn in turns]


def sequential(extent: int) -> Any:
    """A loop around nothing."""
    bounds = (tirx.const(0, "int64"), tirx.const(extent, "int64"))
    return tirx.For(tirx.Var("v", "int64"), *bounds, tirx.ForKind.SERIAL, tirx.Evaluate(0))


def made(shape: list[tuple[int, int]], first: int) -> tuple[Any, Slab | None]:
    """A buffer, and what loops touch of it."""
    buffer = tirx.decl_buffer((SIZE,), "float32", name="x")
    loops = [sequential(extent) for extent, _ in shape]
    index = tirx.const(first, "int64")
    for loop, (_, step) in zip(loops, shape, strict=True):
        index = index + loop.loop_var * step
    return buffer, slab_of(buffer, [index], False, loops, loops)


@given(loops_and_steps, st.integers(0, 100))
def test_all_that_is_touched_and_nothing_else(shape: list[tuple[int, int]], first: int) -> None:
    _, slab = made(shape, first)
    moving = [(extent, step) for extent, step in shape if step]
    elements = touched(moving, first)
    if slab is None:
        spans = [1]
        for extent, step in sorted(moving, key=lambda x: x[1]):
            if step < spans[-1]:
                break
            spans.append(spans[-1] + (extent - 1) * step)
        assert len(spans) <= len(moving)  # a loop goes back into what others have touched
        return
    starts = touched(list(slab.rows), int(slab.first))
    rows = [start + i for start in starts for i in range(slab.elements)]
    assert sorted(rows) == sorted(elements)
    assert len(set(rows)) == len(rows) == slab.count == slab.size_bytes // 4


@given(loops_and_steps, st.integers(0, 100))
def test_each_row_is_asked_for_line_by_line(shape: list[tuple[int, int]], first: int) -> None:
    buffer, slab = made(shape, first)
    if slab is None:
        return
    lines = slab.lines(1.0, LINE_BYTES)
    each = sequential(lines.count)
    asking = tirx.For(each.loop_var, each.min, each.extent, each.kind, lines.ask(each.loop_var))
    starts = touched(list(slab.rows), int(slab.first))
    expected = {start + i for start in starts for i in range(0, slab.elements, LINE)}
    assert addresses(SimpleNamespace(body=asking), {}, buffer) == expected
    assert lines.count == len(starts) * -(-slab.elements // LINE)


def test_a_step_that_varies_is_no_row() -> None:
    buffer, loop = tirx.decl_buffer((SIZE,), "float32", name="x"), sequential(8)
    for index in (loop.loop_var % 3, loop.loop_var * loop.loop_var):
        assert slab_of(buffer, [index], False, [loop], [loop]) is None


@given(st.integers(1, 2000), st.integers(2, 500), st.sampled_from([0.5, 0.75, 1.0]))
def test_turns_ask_for_everything_in_time(extent: int, count: int, share: float) -> None:
    _, slab = made([(count, LINE)], 0)
    assert slab is not None
    lines = slab.lines(share, LINE_BYTES)
    apart = turn_for(sequential(extent), [lines])
    if apart is None:
        return
    turns = extent // apart
    assert extent == turns * apart
    assert apart >= 8
    assert lines.together(turns) <= 8
    assert max(1, int(turns * share)) * lines.together(turns) >= lines.count


def test_a_buffer_without_dimensions_is_one_element() -> None:
    buffer = tirx.decl_buffer((), "float32", name="x")
    loops = [sequential(4)]
    slab = slab_of(buffer, [], False, loops, loops)
    assert slab is not None
    assert (slab.buffer, int(slab.first)) == (buffer, 0)
