"""Indices at which the blocks of a scheduled function read and write, over their loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tvm import ir, sym, tirx
from tvm.s_tir import SBlockRealize

from ansor.dag.from_tir.read import REDUCE
from ansor.lowering.statements import collect, substitute_variables


def path_to(
    stmt: Any, name: str, loops: tuple[Any, ...] = ()
) -> tuple[tuple[Any, ...], Any] | None:
    """The loops around a block, outermost first, and the block."""
    if isinstance(stmt, tirx.SeqStmt):
        return next((p for s in stmt.seq if (p := path_to(s, name, loops)) is not None), None)
    if isinstance(stmt, tirx.AttrStmt):
        return path_to(stmt.body, name, loops)
    if isinstance(stmt, tirx.For):
        return path_to(stmt.body, name, (*loops, stmt))
    if not isinstance(stmt, SBlockRealize):
        return None
    if str(stmt.block.name_hint) == name:
        return loops, stmt
    return path_to(stmt.block.body, name, loops)


def read_indices(realize: Any, buffer: Any, loops: Sequence[Any]) -> list[Any]:
    """The indices at which a block reads a buffer, over its loops of more than one iteration."""
    return next(
        indices
        for source, indices, is_write in accesses(realize, loops)
        if source.same_as(buffer) and not is_write
    )


def accesses(realize: Any, loops: Sequence[Any]) -> Iterator[tuple[Any, list[Any], bool]]:
    """The reads and writes of a block: the buffer, the indices over loops of more than one
    iteration, and whether it writes."""
    variables = [iter_var.var for iter_var in realize.block.iter_vars]
    values = dict(zip(variables, realize.iter_values, strict=True))
    single = {loop.loop_var: loop.min for loop in loops if int(loop.extent) == 1}
    body = realize.block.body
    found = [(load.source, load.indices, False) for load in collect(body, ir.TensorLoad)]
    found += [(store.buffer, store.indices, True) for store in collect(body, tirx.BufferStore)]
    for buffer, indices, is_write in found:
        yield (
            buffer,
            [substitute_variables(substitute_variables(i, values), single) for i in indices],
            is_write,
        )


def is_reducing(loop: Any, realize: Any) -> bool:
    """Whether a loop is a reduction loop of a block."""
    variables = zip(realize.block.iter_vars, realize.iter_values, strict=True)
    reduced = (value for variable, value in variables if int(variable.iter_type) == REDUCE)
    return any(loop.loop_var.same_as(x) for value in reduced for x in collect(value, tirx.Var))


def position_of(indices: Sequence[Any], buffer: Any) -> Any:
    """Number of an element of a buffer; zero for a buffer without dimensions."""
    position = tirx.const(0, str(indices[0].ty.dtype) if indices else "int32")
    for index, size in zip(indices, buffer.shape, strict=True):
        position = position * int(size) + index
    return position


def step_of(position: Any, loops: Sequence[Any], number: int) -> int | None:
    """Elements by which an iteration of a loop advances; None if this varies.

    For a parallel loop, which may be several fused loops, this is the first step.
    """
    analyzer, moved = sym.Analyzer(), loops[number]
    for loop in loops:
        analyzer.bind(loop.loop_var, ir.Range.from_min_extent(loop.min, loop.extent))

    def after(steps: int) -> int | None:
        values = (zero_of(moved) + count for count in (0, steps))
        first, last = (substitute_variables(position, {moved.loop_var: value}) for value in values)
        distance = analyzer.simplify(last - first)
        return int(distance) if isinstance(distance, tirx.IntImm) else None

    step, steps = after(1), int(moved.extent) - 1
    if moved.kind == tirx.ForKind.PARALLEL or step is None:
        return step
    return step if after(steps) == steps * step else None


def zero_of(loop: Any) -> Any:
    """Zero of the type of a loop's variable."""
    return tirx.const(0, str(loop.loop_var.ty.dtype))
