"""Copies that turn rows into columns: square tiles are transposed in vector registers.

A vector of elements from different rows is gathered load by load. Rows at distances of multiples of
4 KB share one set of the first cache, which holds fewer rows than a vector has lanes. Here a row
for each lane is loaded, and the rows exchange elements in ``log2(lanes)`` rounds of shuffles. In
each round, rows whose numbers differ in one bit swap half of their lanes (Eklundh, "A Fast Computer
Method for Matrix Transposing", 1972).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import ir, sym, tirx
from tvm.s_tir import SBlock, SBlockRealize

from ansor.dag.from_tir.read import is_literal
from ansor.lowering.statements import replace_loops, substitute_variables

_ANALYZER = sym.Analyzer()


def transpose_tiles(func: tirx.PrimFunc, tiles: Mapping[Any, int]) -> tirx.PrimFunc:
    """`func` with tiles transposed in registers, except tiles that a condition guards.

    Args:
        tiles: maps the variable of a tile's outer loop to the number of lanes. The source is
            contiguous along this loop. The number of lanes, a power of two, is the extent of the
            loop and of the one inside it.
    """
    return func.with_body(replace_loops(func.body, tiles, _transposed)) if tiles else func


def _transposed(loop: Any, lanes: int) -> Any:
    """The tile of a loop and the one inside it, as one block for all of its elements."""
    realize = loop.body.body
    block, store = realize.block, realize.block.body
    load = store.value
    if not is_literal(realize.predicate, 1) or not isinstance(load, ir.TensorLoad):
        return loop
    zero = tirx.const(0, str(loop.loop_var.ty.dtype))
    first = {loop.loop_var: zero, loop.body.loop_var: zero}
    row = _along(loop.loop_var, realize)
    lane = _along(loop.body.loop_var, realize)
    rows = [
        tirx.BufferLoad(load.source, _at(load.indices, lane, k, row, lanes)) for k in range(lanes)
    ]
    statements, columns = _exchanged(rows, lanes, str(load.source.dtype))
    statements += [
        tirx.BufferStore(store.buffer, column, _at(store.indices, row, j, lane, lanes))
        for j, column in enumerate(columns)
    ]
    reads, writes = (
        [_region(buffer, indices, (row, lane), lanes)]
        for buffer, indices in ((load.source, load.indices), (store.buffer, store.indices))
    )
    body = tirx.SeqStmt(statements)
    tile = SBlock(block.iter_vars, reads, writes, block.name_hint, body)
    values = [substitute_variables(value, first) for value in realize.iter_values]
    return SBlockRealize(values, realize.predicate, tile)


def _along(loop_var: Any, realize: Any) -> Any:
    """The variable of a block that a loop advances."""
    for variable, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        step = substitute_variables(value, {loop_var: loop_var + 1}) - value
        if int(_ANALYZER.simplify(step)):
            return variable.var
    raise ValueError(f"no variable of the block runs along {loop_var}")


def _at(indices: Any, fixed: Any, offset: int, vector: Any, lanes: int) -> list[Any]:
    """`indices` with `offset` added where `fixed` is, and a whole vector where `vector` is."""
    found = []
    for index in indices:
        if index.same_as(fixed):
            found.append(index + offset)
        elif index.same_as(vector):
            found.append(tirx.Ramp(index, tirx.const(1, str(index.ty.dtype)), lanes))
        else:
            found.append(index)
    return found


def _region(buffer: Any, indices: Any, along: tuple[Any, Any], lanes: int) -> Any:
    sizes = [lanes if any(index.same_as(v) for v in along) else 1 for index in indices]
    ranges = [ir.Range.from_min_extent(i, size) for i, size in zip(indices, sizes, strict=True)]
    return tirx.BufferRegion(buffer, ranges)


def _exchanged(rows: list[Any], lanes: int, dtype: str) -> tuple[list[Any], list[Any]]:
    """Statements that transpose a square of vectors, and the vectors of the result."""
    statements: list[Any] = []

    def bound(value: Any) -> Any:
        variable = tirx.Var(f"vector{len(statements)}", f"{dtype}x{lanes}")
        statements.append(tirx.Bind(variable, value))
        return variable

    vectors = [bound(row) for row in rows]
    bit = lanes // 2
    while bit:
        low = [lanes + k - bit if k & bit else k for k in range(lanes)]
        high = [lanes + k if k & bit else k + bit for k in range(lanes)]
        pairs = [(i, i + bit) for i in range(lanes) if not i & bit]
        for i, j in pairs:
            both = [vectors[i], vectors[j]]
            vectors[i], vectors[j] = (bound(tirx.Shuffle(both, order)) for order in (low, high))
        bit //= 2
    return statements, vectors
