"""Prefetches of rows that are packed or summed up.

A copy for packing reads short rows at large distances. So does a reduction whose operand is not
packed. The hardware prefetches only inside a page, so that the core would wait for each row. Here
each row prefetches a row further on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import ir, sym, tirx

from ansor.config import PREFETCH
from ansor.lowering.accesses import (
    accesses,
    is_reducing,
    path_to,
    position_of,
    read_indices,
    step_of,
    zero_of,
)
from ansor.lowering.prefetch.emit import prefetch_line
from ansor.lowering.prefetch.tile_ahead import FarOperands
from ansor.lowering.statements import (
    collect,
    replace_loops,
    sequence,
    substitute_variables,
    with_loop_body,
)
from ansor.program.steps import PrefetchPackedRows


@dataclass(frozen=True)
class _Rows:
    """The rows of an array that a block reads.

    Attributes:
        loop: iterates over the rows.
        first: number of a row's first element in `buffer`.
        elements: contiguous elements of a row.
        ahead_bytes: between a row and the row that it prefetches.
    """

    loop: Any
    buffer: Any
    first: Any
    elements: int
    ahead_bytes: int


def prefetch_rows(
    body: Any, copies: Mapping[str, PrefetchPackedRows], far: Mapping[str, FarOperands]
) -> Any:
    """`body` with prefetches of the rows that blocks read.

    Args:
        copies: steps of blocks that pack something, by name.
        far: operands of blocks by name that reduce tile by tile.
    """
    for name, step in copies.items():
        found = path_to(body, name)
        rows = None if found is None else _packed(*found)
        if rows is not None:
            body = _with_fetches(body, rows, step.line_bytes)
    for name, operands in far.items():
        for param in operands.params:
            found = path_to(body, name)
            rows = None if found is None else _summed(*found, param)
            if rows is not None:
                body = _with_fetches(body, rows, operands.step.line_bytes)
    return body


def _packed(loops: tuple[Any, ...], realize: Any) -> _Rows | None:
    """The rows that a copy reads."""
    stored = realize.block.body
    loads = collect(stored, ir.TensorLoad)
    if len(loads) != 1 or not isinstance(stored, tirx.BufferStore):
        return None
    return _rows(loops, loads[0].source, read_indices(realize, loads[0].source, loops))


def _summed(loops: tuple[Any, ...], realize: Any, buffer: Any) -> _Rows | None:
    """The rows of an array that a reduction reads."""
    read = (
        i for own, i, is_write in accesses(realize, loops) if own.same_as(buffer) and not is_write
    )
    indices = next(read, None)
    if indices is None:
        return None
    rows = _rows(loops, buffer, indices, PREFETCH.summed_row_ahead_bytes)
    return rows if rows is not None and is_reducing(rows.loop, realize) else None


def _rows(
    loops: tuple[Any, ...],
    buffer: Any,
    indices: Sequence[Any],
    ahead_bytes: int = PREFETCH.row_ahead_bytes,
) -> _Rows | None:
    """The rows of an array that a block reads, if they have large distances."""
    size = buffer.dtype.itemsize
    live = [loop for loop in loops if int(loop.extent) > 1]
    position = position_of(indices, buffer)
    run = 1
    for number in reversed(range(len(live))):
        loop, step = live[number], step_of(position, live, number)
        if step == run:
            run *= int(loop.extent)
            continue
        if step == 0 and loop.kind != tirx.ForKind.PARALLEL:
            continue
        if (
            step is None
            or loop.kind != tirx.ForKind.SERIAL
            or run * size < PREFETCH.least_row_bytes
        ):
            return None
        if (
            step * size < PREFETCH.row_distance_bytes
            or int(loop.extent) * run * size <= ahead_bytes
        ):
            return None
        inner = {x.loop_var: zero_of(x) for x in live[number + 1 :]}
        first = sym.Analyzer().simplify(substitute_variables(position, inner))
        return _Rows(loop, buffer, first, run, ahead_bytes)
    return None


def _with_fetches(body: Any, rows: _Rows, line_bytes: int) -> Any:
    """Each row prefetches all lines of a later row; the last rows prefetch the last row."""
    size = rows.buffer.dtype.itemsize
    ahead = -(-rows.ahead_bytes // (rows.elements * size))
    variable, last = rows.loop.loop_var, int(rows.loop.extent) - 1
    later = tirx.min(variable + ahead, last)
    first = substitute_variables(rows.first, {variable: later})
    lines = range(0, rows.elements, line_bytes // size)

    def made(loop: Any, _: int) -> Any:
        fetches = [prefetch_line(rows.buffer, first + element) for element in lines]
        return with_loop_body(loop, sequence(*fetches, loop.body))

    return replace_loops(body, {variable: 0}, made)
