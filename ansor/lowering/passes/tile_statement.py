"""Derives the operation of an instruction on tiles from the statement in its marked loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tvm import ir, tirx

from ansor.errors import LoweringError
from ansor.lowering.dot_functions import DotFunction, function_of
from ansor.lowering.passes.tile_operand import Operand, within_panels


@dataclass(frozen=True, eq=False)
class TileStatement:
    """A sum of groups in the loops of one instruction.

    Attributes:
        function: adds up one group.
        result, left, right: operands of the function; lanes run along the right one.
        starts: condition under which sums begin; None if they never begin here.
        rows, lanes: the loops of the instruction; None for one iteration.
        words: the same, the outermost first.
    """

    function: DotFunction
    result: Operand
    left: Operand
    right: Operand
    starts: Any
    rows: tirx.For | None
    lanes: tirx.For | None
    words: list[tirx.For]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Rows, lanes and words."""
        rows, lanes = (1 if x is None else int(x.extent) for x in (self.rows, self.lanes))
        return rows, lanes, math.prod(int(loop.extent) for loop in self.words)

    @property
    def loops(self) -> list[tirx.For]:
        """The loops of the instruction."""
        return [loop for loop in (self.rows, *self.words, self.lanes) if loop is not None]


def tile_statement(marked: Any) -> TileStatement:
    """The statement in the loops of an instruction.

    Raises:
        LoweringError: it does not add up groups, or not along these loops.
    """
    loops: list[tirx.For] = []
    while isinstance(marked, tirx.For):
        loops.append(marked)
        marked = marked.body
    starts, update = _parts(marked)
    function = function_of(str(update.value.args[0].value))
    if function is None:
        raise LoweringError("the loops of an instruction on tiles add up no groups")
    left, right = (_operand(address.args[0], loops) for address in update.value.args[2:4])
    result = Operand(update.buffer, within_panels(update.indices[0], loops))
    found: dict[str, list[tirx.For]] = {"rows": [], "lanes": [], "words": []}
    for loop in loops:
        found[_kind(loop, result, left, right)].append(loop)
    if max(len(found["rows"]), len(found["lanes"])) > 1:
        raise LoweringError("two loops of an instruction on tiles move the same operands")
    rows, lanes = (next(iter(found[kind]), None) for kind in ("rows", "lanes"))
    statement = TileStatement(function, result, left, right, starts, rows, lanes, found["words"])
    return _checked(statement)


def _checked(statement: TileStatement) -> TileStatement:
    """The statement, if words and lanes are neighbours in memory."""
    elements = statement.function.instruction.elements
    words = statement.words
    close = {
        (statement.left.stride(words[-1] if words else None), elements),
        (statement.right.stride(statement.lanes), elements),
        (statement.result.stride(statement.lanes), 1),
    }
    follow = all(
        operand.stride(outer) == operand.stride(inner) * int(inner.extent)
        for outer, inner in pairwise(words)
        for operand in (statement.left, statement.right)
    )
    if not follow or any(stride not in (0, wanted) for stride, wanted in close):
        raise LoweringError("words or lanes of a tile are apart in memory")
    return statement


def _parts(body: Any) -> tuple[Any, Any]:
    """The condition under which sums begin, and the statement that adds up."""
    stmts = list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]
    *before, update = stmts
    is_update = isinstance(update, tirx.BufferStore) and isinstance(update.value, ir.Call)
    if len(before) > 1 or not is_update:
        raise LoweringError("the loops of an instruction on tiles hold further statements")
    if not before:
        return None, update
    (start,) = before
    is_conditional = isinstance(start, tirx.IfThenElse)
    if not is_conditional and not isinstance(start, tirx.BufferStore):
        raise LoweringError("the loops of an instruction on tiles hold further statements")
    return start.condition if is_conditional else True, update


def _operand(load: Any, loops: Sequence[tirx.For]) -> Operand:
    return Operand(load.source, within_panels(load.indices[0], loops))


def _kind(loop: tirx.For, result: Operand, left: Operand, right: Operand) -> str:
    """The role of a loop in an instruction, by the operands that it moves."""
    moved: Sequence[bool] = [operand.is_moved_by(loop) for operand in (result, left, right)]
    kinds = {(True, True, False): "rows", (True, False, True): "lanes"}
    kinds[False, True, True] = "words"
    if tuple(moved) not in kinds:
        raise LoweringError("a loop of an instruction on tiles is neither rows, words nor lanes")
    return kinds[moved[0], moved[1], moved[2]]
