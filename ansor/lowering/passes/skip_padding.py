"""Leaves out the steps of a convolution that read padding.

A condition encloses the work at one position along a padded dimension. It stands inside the
innermost loop that moves along this dimension. All such loops lie outside the register tile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.s_tir import SBlockRealize

from ansor.lowering.accesses import read_indices
from ansor.lowering.statements import collect, with_body, with_loop_body, with_statement

_SPELLED_OUT = (tirx.ForKind.UNROLLED, tirx.ForKind.VECTORIZED)


@dataclass(frozen=True)
class Guard:
    """Reads of `buffer` matter only if the index of dimension `dim` is in ``first .. end - 1``."""

    buffer: Any
    dim: int
    first: int
    end: int


@dataclass(frozen=True)
class _Condition:
    """A condition, and the variables of the loops that change it."""

    holds: Any
    variables: tuple[Any, ...]

    def depends_on(self, variable: Any) -> bool:
        return any(variable.same_as(own) for own in self.variables)


def insert_padding_conditions(
    func: tirx.PrimFunc, guards: Mapping[str, Sequence[Guard]]
) -> tirx.PrimFunc:
    """`func` with steps left out.

    Args:
        guards: for blocks by name. A guard has no effect if an unrolled or vectorised loop moves
            its index.
    """
    return func.with_body(_Skipper(guards).statement(func.body, [])[0]) if guards else func


class _Skipper:
    """Rewrites statements; a condition moves outwards to the first loop that changes it."""

    def __init__(self, guards: Mapping[str, Sequence[Guard]]) -> None:
        self._guards = guards

    def statement(self, stmt: Any, loops: list[Any]) -> tuple[Any, list[_Condition]]:
        """The new statement, and the conditions that belong further outside."""
        if isinstance(stmt, tirx.SeqStmt):
            made = [self.statement(child, loops) for child in stmt.seq]
            return tirx.SeqStmt([child for child, _ in made]), [c for _, more in made for c in more]
        if isinstance(stmt, tirx.AttrStmt):
            body, waiting = self.statement(stmt.body, loops)
            return with_statement(stmt, body), waiting
        if isinstance(stmt, tirx.For):
            return self._loop(stmt, loops)
        if not isinstance(stmt, SBlockRealize):
            return stmt, []
        if str(stmt.block.name_hint) in self._guards:
            guards = self._guards[str(stmt.block.name_hint)]
            found = [_condition(guard, stmt, loops) for guard in guards]
            return stmt, [condition for condition in found if condition is not None]
        body, waiting = self.statement(stmt.block.body, loops)
        return SBlockRealize(stmt.iter_values, stmt.predicate, with_body(stmt.block, body)), waiting

    def _loop(self, loop: Any, loops: list[Any]) -> tuple[Any, list[_Condition]]:
        body, waiting = self.statement(loop.body, [*loops, loop])
        here = [c.holds for c in waiting if c.depends_on(loop.loop_var)]
        if here:
            body = tirx.IfThenElse(tirx.all(*here), body, None)
        return with_loop_body(loop, body), [c for c in waiting if not c.depends_on(loop.loop_var)]


def _condition(guard: Guard, realize: Any, loops: list[Any]) -> _Condition | None:
    """The condition under which the block's read of the guarded buffer is not all zeros."""
    index = read_indices(realize, guard.buffer, loops)[guard.dim]
    used = collect(index, tirx.Var)
    moving = [loop for loop in loops if any(loop.loop_var.same_as(var) for var in used)]
    if not moving or any(int(loop.kind) in _SPELLED_OUT for loop in moving):
        return None
    # Not negative within the bounds. TVM knows no bounds from a product; with those of two
    # comparisons it finds no constant sizes for buffers inside and keeps all of them.
    inside = (index - guard.first) * (guard.end - 1 - index) >= 0
    return _Condition(inside, tuple(used))
