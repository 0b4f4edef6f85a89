"""Loops around a sum of groups, as instructions on tiles of registers.

A step marks two loops: the first of the innermost reduction level, and the first of the three that
one instruction computes. Between the two are the loops over result tiles, innermost. Results are
loaded before the reduction level, or set to zeros where sums begin, and stored after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from tvm import ir, sym, tirx
from tvm.target import codegen
from tvm_ffi import structural_map

from ansor.dag.from_tir.read import is_literal
from ansor.errors import LoweringError
from ansor.lowering.passes.tile_operand import Operand
from ansor.lowering.passes.tile_statement import TileStatement, tile_statement
from ansor.lowering.passes.tile_threads import REGION, configured
from ansor.lowering.statements import (
    collect,
    sequence,
    substitute_variables,
    with_loop_body,
    with_statement,
)
from ansor.lowering.tiles.native import NativeTiles, is_native
from ansor.lowering.tiles.plain import PlainTiles
from ansor.lowering.tiles.registers import TileFunction, TileRegisters, TileSet, text_of
from ansor.program.tile_instructions import TILE_BYTES, TILES, tile_instruction

PRODUCTS = "pragma_ansor_tile_products"  # the first loop of the innermost reduction level
TILE = "pragma_ansor_tile"  # the first loop of an instruction
_ANALYZER = sym.Analyzer()


def issue_tiles(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with instructions on tiles in the marked loops, after buffers are flat.

    Raises:
        LoweringError: the marked loops are no products of tiles.
    """
    if not any(a.attr_key == PRODUCTS for a in collect(func.body, tirx.AttrStmt)):
        return func
    functions: dict[TileFunction, None] = {}

    def has(feature: str) -> bool:
        return bool(codegen.llvm_cpu_has_features(feature, func.attrs["target"]))

    def issued(stmt: tirx.AttrStmt) -> Any:
        return _issued(stmt, has, functions) if stmt.attr_key == PRODUCTS else stmt

    body = configured(structural_map(func.body, (tirx.AttrStmt, issued)))
    text = ir.StringImm(text_of(functions))
    return func.with_body(tirx.AttrStmt(_int32(0), "pragma_import_llvm", text, body))


def _issued(
    marked: tirx.AttrStmt, has: Callable[[str], bool], functions: dict[TileFunction, None]
) -> Any:
    """The marked loops as instructions; adds the functions that they call."""
    path = _path(marked.body)
    statement = tile_statement(path[-1].body)
    results = [x for x in path[:-1] if statement.result.is_moved_by(x)]
    writer = _Writer(statement, results, functions)
    known = tile_instruction(str(marked.value.value))
    if not is_native(known, has):
        return writer.on_array(PlainTiles(statement.function, writer.registers, has), marked.body)
    in_order = statement.function.shared_first
    tiles = NativeTiles(known.name if in_order else known.swapped, writer.registers)
    functions |= dict.fromkeys((tiles.begin(), tiles.end()))
    body = writer.written(tiles, marked.body)
    return tirx.AttrStmt(_int32(0), REGION, ir.StringImm(tiles.begin().name), body)


def _is_mark(stmt: Any) -> bool:
    """Whether the loops of an instruction follow."""
    return isinstance(stmt, tirx.AttrStmt) and bool(stmt.attr_key == TILE)


def _path(stmt: Any) -> list[Any]:
    """The loops around the marked loops of an instruction, outermost first, and the mark."""
    if _is_mark(stmt):
        return [stmt]
    found = next((path for path in map(_path, _children(stmt)) if path), [])
    return [stmt, *found] if found and isinstance(stmt, tirx.For) else found


def _children(stmt: Any) -> Sequence[Any]:
    if isinstance(stmt, tirx.SeqStmt):
        return list(stmt.seq)
    if isinstance(stmt, tirx.IfThenElse):
        return [stmt.then_case]
    return [stmt.body] if isinstance(stmt, tirx.For | tirx.AttrStmt) else []


class _Writer:
    """Writes the loops around one statement.

    Attributes:
        statement: the operation of the instruction.
        points: for each result tile, the values of the loops over result tiles.
        registers: the contents of the tiles.
    """

    def __init__(
        self,
        statement: TileStatement,
        results: list[tirx.For],
        functions: dict[TileFunction, None],
    ) -> None:
        self.statement, self._results, self._functions = statement, results, functions
        ranges = [range(int(loop.extent)) for loop in results]
        variables = [loop.loop_var for loop in results]
        self.points = [
            {v: tirx.const(n, str(v.ty.dtype)) for v, n in zip(variables, numbers, strict=True)}
            for numbers in product(*ranges)
        ]
        self._left = self._groups(statement.left)
        self._right = self._groups(statement.right)
        self.registers = self._allocated()
        self._given: list[Any] = []

    def _groups(self, operand: Operand) -> list[list[int]]:
        """The result tiles that share each tile of an operand."""
        moving = [loop.loop_var for loop in self._results if operand.is_moved_by(loop)]
        found: dict[tuple[int, ...], list[int]] = {}
        for number, point in enumerate(self.points):
            found.setdefault(tuple(int(point[v]) for v in moving), []).append(number)
        return list(found.values())

    def _allocated(self) -> TileRegisters:
        """Registers of the operands: the side with fewer tiles stays, and the other side uses the
        rest in turn."""
        results = len(self.points)
        held = min(len(self._left), len(self._right))
        if results + held >= TILES:
            raise LoweringError(f"{results} result tiles do not fit {TILES} registers")
        rows, lanes, words = self.statement.sizes
        first = range(results, results + held)
        others = range(results + held, TILES)
        left = first if self._holds_left else others
        return TileRegisters(rows, lanes, words, results, tuple(left))

    @property
    def _holds_left(self) -> bool:
        return len(self._left) <= len(self._right)

    def on_array(self, tiles: TileSet, body: Any) -> Any:
        """The loops on tiles in an array."""
        array = tirx.decl_buffer((TILES * TILE_BYTES,), "uint8", name="tiles")
        self._given = [tirx.address_of(tirx.BufferLoad(array, [_int32(0)]))]
        return sequence(tirx.AllocBuffer(array), self.written(tiles, body))

    def written(self, tiles: TileSet, body: Any) -> Any:
        """Loads or zeros, the loops, and stores."""
        origin = self._origin(body)
        numbers = range(self.registers.results)
        zeros = sequence(*(self._call(tiles.zero(n)) for n in numbers))
        loads = [self._move(tiles.load(n), self.statement.result, origin, n) for n in numbers]
        starts = self._starts(origin)
        if starts is None:
            begin = sequence(*loads)
        elif is_literal(starts, 1):
            begin = zeros
        else:
            begin = tirx.IfThenElse(starts, zeros, sequence(*loads))
        stores = [self._move(tiles.store(n), self.statement.result, origin, n) for n in numbers]
        return sequence(begin, self._loops(tiles, body), *stores)

    def _origin(self, body: Any) -> dict[Any, Any]:
        """Zero for the variables of the reduction and of the instruction."""
        loops = [x for x in _path(body)[:-1] if not self.statement.result.is_moved_by(x)]
        return self._zeros([*loops, *self.statement.loops])

    @staticmethod
    def _zeros(loops: Sequence[tirx.For]) -> dict[Any, Any]:
        return {x.loop_var: tirx.const(0, str(x.loop_var.ty.dtype)) for x in loops}

    def _starts(self, origin: dict[Any, Any]) -> Any:
        """Whether sums begin with this run of the reduction; None if they never do."""
        condition = self.statement.starts
        if condition is None:
            return None
        return _ANALYZER.simplify(
            substitute_variables(tirx.const(True, "bool") & condition, origin)
        )

    def _loops(self, tiles: TileSet, stmt: Any) -> Any:
        """The loops of the reduction around the products of one step."""
        if not _path(stmt):
            return stmt
        if isinstance(stmt, tirx.SeqStmt):
            return sequence(*(self._loops(tiles, child) for child in stmt.seq))
        if _is_mark(stmt) or any(stmt.same_as(loop) for loop in self._results):
            self._check_results(stmt)
            return self._products(tiles)
        if isinstance(stmt, tirx.IfThenElse):
            return tirx.IfThenElse(stmt.condition, self._loops(tiles, stmt.then_case), None)
        if isinstance(stmt, tirx.AttrStmt):
            return with_statement(stmt, self._loops(tiles, stmt.body))
        return with_loop_body(stmt, self._loops(tiles, stmt.body))

    def _check_results(self, stmt: Any) -> None:
        """Raises a LoweringError if the loops over result tiles hold anything but the marked."""
        for loop in self._results:
            if not stmt.same_as(loop):
                raise LoweringError("loops over result tiles are not the innermost ones")
            stmt = stmt.body
        if not _is_mark(stmt):
            raise LoweringError("loops over result tiles hold further statements")

    def _products(self, tiles: TileSet) -> Any:
        """Loads of operands and products, for all result tiles."""
        left, right = (self.statement.left, self._left), (self.statement.right, self._right)
        (kept, of_kept), (other, of_other) = (left, right) if self._holds_left else (right, left)
        first, inner = self.registers.results, self._zeros(self.statement.loops)
        calls = [
            self._move(tiles.load(first + n), kept, inner, points[0])
            for n, points in enumerate(of_kept)
        ]
        free = range(first + len(of_kept), TILES)
        for turn, points in enumerate(of_other):
            tile = free[turn % len(free)]
            calls.append(self._move(tiles.load(tile), other, inner, points[0]))
            for point in points:
                number = next(n for n, shared in enumerate(of_kept) if point in shared)
                pair = (first + number, tile) if self._holds_left else (tile, first + number)
                calls.append(self._call(tiles.multiply(point, *pair)))
        return sequence(*calls)

    def _move(
        self, function: TileFunction, operand: Operand, values: dict[Any, Any], point: int
    ) -> Any:
        """A load or a store of the tile of an operand."""
        rows = self.statement.rows
        if operand is self.statement.right:
            rows = self.statement.words[-1] if self.statement.words else None
        item_bytes = int(operand.buffer.dtype.itemsize)
        stride = tirx.const(operand.stride(rows) * item_bytes, "int64")
        return self._call(function, operand.at({**values, **self.points[point]}), stride)

    def _call(self, function: TileFunction, *arguments: Any) -> Any:
        self._functions[function] = None
        call = tirx.call_extern("void", function.name, *self._given, *arguments)
        return tirx.Evaluate(call)


def _int32(value: int) -> Any:
    return tirx.const(value, "int32")
