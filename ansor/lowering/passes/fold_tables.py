"""Small tables of constants, folded into the sums over them before TVM unrolls these.

A transform of Winograd's convolution multiplies by a matrix of constants, in two unrolled loops.
The row and the column choose the constant. TVM would unroll the loops first, then evaluate the
choice and check the padding at each of 36 places. Half of the terms are zeros. This takes a sixth
of the time to compile such a program. Here each operand is read once and each sum is stored once.
The sums have the nonzero terms, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import ir, tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm_ffi import structural_equal, structural_map

from ansor.dag.from_tir.read import is_literal
from ansor.lowering.statements import collect, sequence, substitute_variables, with_loop_body

Table = dict[tuple[int, int], float]  # entries that are not zero, by row and column


def fold_tables(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with its unrolled sums over tables of constants written out as statements.

    Args:
        func: scheduled; its blocks are opaque, if there are any.
    """
    body = structural_map(func.body, (tirx.For, _folded))
    return func if body.same_as(func.body) else func.with_body(body)


@dataclass(frozen=True)
class _Sum:
    """``out[.., row, ..] += table[row, column] * operand[.., column, ..]``.

    Attributes:
        store: the statement.
        row, column: the loops, both unrolled.
        others: the other loops around the statement, outermost first.
        realize: the block around the statement, None if there is none.
    """

    store: tirx.BufferStore
    row: tirx.For
    column: tirx.For
    others: list[tirx.For]
    realize: SBlockRealize | None

    @property
    def table(self) -> Any:
        return self.store.value.b.a

    @property
    def operand(self) -> Any:
        return self.store.value.b.b


def _folded(loop: tirx.For) -> Any:
    found = _sum_in(loop) if loop.kind == tirx.ForKind.UNROLLED else None
    table = None if found is None else _table(found)
    if found is None or table is None:
        return loop
    body: Any = sequence(*_statements(found, table))
    if found.realize is not None:
        body = _with_body(found.realize, body)
    for other in reversed(found.others):
        body = with_loop_body(other, body)
    return body


def _sum_in(loop: tirx.For) -> _Sum | None:
    """The sum that a nest of loops around a single statement takes, if it does."""
    loops: list[tirx.For] = []
    inner: Any = loop
    while isinstance(inner, tirx.For):
        loops.append(inner)
        inner = inner.body
    realize = inner if isinstance(inner, SBlockRealize) else None
    store = inner if realize is None else realize.block.body
    if not _adds_product(store) or not _is_unconditional(realize):
        return None
    by_table = _loops_of(store.value.b.a, loops)
    by_operand = _loops_of(store.value.b.b, loops)
    by_place = _loops_of(store.indices, loops)
    rows = [x for x in by_table if x in by_place and x not in by_operand]
    columns = [x for x in by_table if x not in by_place]
    others = [x for x in range(len(loops)) if x not in by_table]
    if (len(rows), len(columns)) != (1, 1) or not all(x in by_place for x in others):
        return None
    if any(not _is_unrolled(loops[x]) for x in by_table):
        return None
    row, column = loops[rows[0]], loops[columns[0]]
    return _Sum(store, row, column, [loops[x] for x in others], realize)


def _adds_product(store: Any) -> bool:
    """Whether a statement adds the product of a chosen constant and an element of a buffer."""
    if not isinstance(store, tirx.BufferStore) or not isinstance(store.value, tirx.Add):
        return False
    load, product = store.value.a, store.value.b
    if not isinstance(product, tirx.Mul) or not isinstance(product.a, tirx.Select):
        return False
    if not isinstance(load, ir.TensorLoad) or not load.source.same_as(store.buffer):
        return False
    if any(x.source.same_as(store.buffer) for x in collect(product, ir.TensorLoad)):
        return False
    return all(map(structural_equal, load.indices, store.indices))


def _is_unconditional(realize: SBlockRealize | None) -> bool:
    return realize is None or is_literal(realize.predicate, 1)


def _loops_of(root: Any, loops: Sequence[tirx.For]) -> list[int]:
    """Numbers of the loops whose variables occur."""
    used = collect(root, tirx.Var)
    return [i for i, loop in enumerate(loops) if any(loop.loop_var.same_as(x) for x in used)]


def _is_unrolled(loop: tirx.For) -> bool:
    return loop.kind == tirx.ForKind.UNROLLED and isinstance(loop.extent, tirx.IntImm)


def _table(found: _Sum) -> Table | None:
    """The table's entries; None if it has other entries than constants."""
    chosen = _read(found.table, [found.row.loop_var, found.column.loop_var])
    if chosen is None:
        return None
    places = (
        (row, column)
        for row in range(int(found.row.extent))
        for column in range(int(found.column.extent))
    )
    entries = {place: chosen.at(place) for place in places}
    return {place: entry for place, entry in entries.items() if entry}


@dataclass(frozen=True)
class _Chosen:
    """A constant, or one of two: a variable, given by its number, is compared with a value."""

    value: float
    variable: int = 0
    equal: int = 0
    then: _Chosen | None = None
    otherwise: _Chosen | None = None

    def at(self, place: tuple[int, int]) -> float:
        """The constant for values of the variables."""
        found: _Chosen = self
        while found.then is not None and found.otherwise is not None:
            found = found.then if place[found.variable] == found.equal else found.otherwise
        return found.value


def _read(expr: Any, variables: Sequence[Any]) -> _Chosen | None:
    """The choice that an expression makes; None if it is any other expression."""
    if isinstance(expr, tirx.FloatImm):
        return _Chosen(float(expr.value))
    if not isinstance(expr, tirx.Select) or not isinstance(expr.condition, tirx.EQ):
        return None
    asked, value = expr.condition.a, expr.condition.b
    numbers = [i for i, variable in enumerate(variables) if variable.same_as(asked)]
    then, otherwise = _read(expr.true_value, variables), _read(expr.false_value, variables)
    if not numbers or not isinstance(value, tirx.IntImm) or then is None or otherwise is None:
        return None
    return _Chosen(0.0, numbers[0], int(value), then, otherwise)


def _with_body(realize: SBlockRealize, body: Any) -> SBlockRealize:
    """The block around other statements. Its access regions refer to removed loops, but no later
    pass reads them."""
    block, none = realize.block, list[Any]()
    parts = (block.iter_vars, none, none, block.name_hint, body, block.init)
    changed = SBlock(*parts, block.alloc_buffers, block.match_buffers, block.annotations)
    return SBlockRealize(realize.iter_values, realize.predicate, changed)


def _statements(found: _Sum, table: Table) -> list[Any]:
    """Statements that read each necessary operand and store each sum."""
    store, dtype = found.store, str(found.operand.ty.dtype)
    terms: dict[int, Any] = {}
    statements: list[Any] = []
    for number in sorted({column for _, column in table}):
        terms[number] = tirx.Var(f"{found.column.loop_var.name}_{number}", dtype)
        statements.append(tirx.Bind(terms[number], _at(found.operand, found.column, number)))
    for row in range(int(found.row.extent)):
        indices = _at(store.indices, found.row, row)
        total = tirx.BufferLoad(store.buffer, indices)
        for column, term in terms.items():
            total = _plus(total, table.get((row, column), 0.0), term, dtype)
        statements.append(tirx.BufferStore(store.buffer, total, indices))
    return statements


def _plus(total: Any, entry: float, term: Any, dtype: str) -> Any:
    """The sum with an entry times a term, which rounds as the product would."""
    if entry == 0.0:
        return total
    if abs(entry) == 1.0:
        return total + term if entry > 0.0 else total - term
    return total + tirx.const(entry, dtype) * term


def _at(root: Any, loop: tirx.For, number: int) -> Any:
    """An expression, or several, in one iteration of a loop."""
    variable = loop.loop_var
    return substitute_variables(
        root, {variable: loop.min + tirx.const(number, str(variable.ty.dtype))}
    )
