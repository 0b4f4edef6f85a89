"""Splits that do not divide: the last tile is moved back to the end of the axis.

TensorIR guards such a split with a condition, ``outer * t + inner < n``, which keeps the compiler
from using vectors and registers. Here the guard is removed, and a tile starts at
``min(outer * t, n - t)``. Every tile is full, and the last one computes some elements a second
time, with the same results. This is valid if a tile is initialised, computed and written before the
next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tvm import sym, tirx
from tvm.s_tir import SBlockRealize

from ansor.dag.from_tir.read import REDUCE, is_literal
from ansor.lowering.passes.packed_columns import Unmoved, read_at_places
from ansor.lowering.statements import with_body, with_loop_body


@dataclass(frozen=True)
class Tail:
    """A split of `extent` iterations into tiles of `tile`, which does not divide it.

    Constants in `packed` have columns in the order of tiles. They are read as if no tile was moved.
    """

    extent: int
    tile: int
    packed: tuple[Any, ...] = ()

    @property
    def end(self) -> int:
        """The end of the last tile without the move."""
        return -(-self.extent // self.tile) * self.tile


Tails = Mapping[str, Mapping[int, Tail]]  # block -> number among its spatial axes -> split
_ANALYZER = sym.Analyzer()


def shift_tails(func: tirx.PrimFunc, tails: Tails) -> tirx.PrimFunc:
    """`func` with the guards of the named blocks replaced by shifted tiles."""
    return func.with_body(_statement(func.body, tails)) if tails else func


def _statement(stmt: Any, tails: Tails) -> Any:
    if isinstance(stmt, tirx.SeqStmt):
        return tirx.SeqStmt([_statement(child, tails) for child in stmt.seq])
    if isinstance(stmt, tirx.For):
        return with_loop_body(stmt, _statement(stmt.body, tails))
    if not isinstance(stmt, SBlockRealize):
        return stmt
    name, block = str(stmt.block.name_hint), stmt.block
    if name == "root":
        body = _statement(block.body, tails)
        return SBlockRealize(stmt.iter_values, stmt.predicate, with_body(block, body))
    return _shifted(stmt, tails[name]) if name in tails else stmt


def _shifted(realize: Any, tails: Mapping[int, Tail]) -> Any:
    """The block without the guards of its tails, and with shifted values of their axes."""
    values, kept, places = list(realize.iter_values), [], []
    spatial = [i for i, v in enumerate(realize.block.iter_vars) if int(v.iter_type) != REDUCE]
    for guard in _guards(realize.predicate):
        terms = list(_terms(guard.a, 1)) if isinstance(guard, tirx.LT) else []
        axis = next((i for i in spatial if _runs_along(values[i], terms)), None)
        tail = None if axis is None else tails.get(spatial.index(axis))
        if axis is None or tail is None or not is_literal(guard.b, tail.extent):
            kept.append(guard)  # no guard of a split: an attached stage reaches beyond its buffer
            continue
        places.append((Unmoved(axis, values[axis], tail.end), tail.packed))
        values[axis] = _moved(values[axis], guard.a, terms, tail)
    shifted = SBlockRealize(values, tirx.all(*kept) if kept else True, realize.block)
    for unmoved, packed in places:
        shifted = read_at_places(shifted, unmoved, packed) if packed else shifted
    return shifted


def _moved(value: Any, guarded: Any, terms: list[tuple[Any, int]], tail: Tail) -> Any:
    """`value` with the outer part of the guarded sum bounded so that a whole tile fits."""
    inner = _sum([(e, c) for e, c in terms if abs(c) < tail.tile])
    outer = _sum([(e, c) for e, c in terms if abs(c) >= tail.tile])
    rest = _ANALYZER.canonical_simplify(value - guarded)
    start = tirx.min(outer, tirx.const(tail.extent - tail.tile, "int32"))
    return _ANALYZER.simplify(rest + start + inner)


def _guards(predicate: Any) -> Iterator[Any]:
    if isinstance(predicate, tirx.And):
        yield from _guards(predicate.a)
        yield from _guards(predicate.b)
    elif not isinstance(predicate, tirx.IntImm):
        yield predicate


def _terms(expr: Any, factor: int) -> Iterator[tuple[Any, int]]:
    """The summands of an index expression with their coefficients."""
    if isinstance(expr, tirx.Add):
        yield from _terms(expr.a, factor)
        yield from _terms(expr.b, factor)
    elif isinstance(expr, tirx.Mul) and isinstance(expr.b, tirx.IntImm):
        yield from _terms(expr.a, factor * int(expr.b.value))
    else:
        yield expr, factor


def _runs_along(value: Any, terms: list[tuple[Any, int]]) -> bool:
    """Whether the innermost loop of a guarded sum also moves `value`."""
    own = [e for e, c in terms if c == 1 and isinstance(e, tirx.Var)]
    found = [e for e, _ in _terms(value, 1) if isinstance(e, tirx.Var)]
    return any(e.same_as(other) for e in own for other in found)


def _sum(terms: list[tuple[Any, int]]) -> Any:
    total: Any = tirx.const(0, "int32")
    for expr, factor in terms:
        total = total + expr * factor
    return total
