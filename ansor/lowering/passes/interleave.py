"""Copies that put the neighbours of a few rows next to each other, interleaved in vector registers.

TVM stores a vector with a stride element by element. Here a function takes a vector of each row,
and its result alternates between the elements of the rows. The call first has addresses as
operands; `ansor.lowering.passes.vector_operands` makes loads and stores of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tvm import ir, sym, tirx
from tvm.s_tir import SBlock, SBlockRealize

from ansor.dag.from_tir.read import is_literal
from ansor.lowering.statements import collect, replace_loops, substitute_variables, with_llvm

INTERLEAVE = "ansor_interleave"  # how the names of these functions begin
_ANALYZER = sym.Analyzer()


def interleave_tiles(func: tirx.PrimFunc, tiles: Mapping[Any, int]) -> tirx.PrimFunc:
    """`func` with the rows of tiles interleaved, except tiles that a condition guards.

    Args:
        tiles: maps the variable of the loop over a tile's rows to the elements of a row. These are
            the extent of the loop inside, along which the source is contiguous.
    """
    if not tiles:
        return func
    functions: dict[str, str] = {}

    def interleaved(loop: Any, lanes: int) -> Any:
        return _interleaved(loop, lanes, functions)

    body = replace_loops(func.body, tiles, interleaved)
    return func.with_body(with_llvm(body, "\n".join(functions.values())))


def _interleaved(loop: Any, lanes: int, functions: dict[str, str]) -> Any:
    """The tile of a loop and the one inside it, as one block with one call."""
    realize = loop.body.body
    block, store = realize.block, realize.block.body
    load = store.value
    if not is_literal(realize.predicate, 1) or not isinstance(load, ir.TensorLoad):
        return loop
    rows, bits = int(loop.extent), 8 * load.source.dtype.itemsize
    name = f"{INTERLEAVE}_{bits}_{rows}_{lanes}"
    functions[name] = _function(name, bits, rows, lanes)
    zero = tirx.const(0, str(loop.loop_var.ty.dtype))
    first = {loop.loop_var: zero, loop.body.loop_var: zero}
    values = [substitute_variables(value, first) for value in realize.iter_values]
    row = _variable_along(realize, loop.loop_var)
    sources = [tirx.BufferLoad(load.source, _at(load.indices, row, k)) for k in range(rows)]
    place = [_ANALYZER.simplify(substitute_variables(i, {row: zero})) for i in store.indices]
    target = tirx.BufferLoad(store.buffer, place)
    addresses = [tirx.address_of(place) for place in (target, *sources)]
    body = tirx.Evaluate(tirx.call_extern("void", name, *addresses))
    lane = _variable_along(realize, loop.body.loop_var)
    read = _region(load.source, load.indices, {row: rows, lane: lanes})
    written = _region(store.buffer, place, {lane: lanes})
    whole = [*written.region[:-1], ir.Range.from_min_extent(place[-1], rows)]
    regions = [read, tirx.BufferRegion(store.buffer, whole)]
    explicit = {"explicit_read_region": [0], "explicit_write_region": [0]}
    parts = (block.iter_vars, regions[:1], regions[1:], block.name_hint, body)
    return SBlockRealize(values, realize.predicate, SBlock(*parts, annotations=explicit))


def _variable_along(realize: Any, loop_var: Any) -> Any:
    """The variable of a block that a loop moves."""
    for variable, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if any(found.same_as(loop_var) for found in collect(value, tirx.Var)):
            return variable.var
    raise ValueError(f"no variable of the block runs along {loop_var}")


def _at(indices: Any, row: Any, number: int) -> list[Any]:
    return [substitute_variables(index, {row: row + number}) for index in indices]


def _region(buffer: Any, indices: Any, sizes: Mapping[Any, int]) -> Any:
    ranges = []
    for index in indices:
        moved = [v for v in collect(index, tirx.Var) if any(v.same_as(key) for key in sizes)]
        size = next((n for key, n in sizes.items() if any(v.same_as(key) for v in moved)), 1)
        ranges.append(ir.Range.from_min_extent(index, size))
    return tirx.BufferRegion(buffer, ranges)


def _function(name: str, bits: int, rows: int, lanes: int) -> str:
    """A function from vectors of `rows` rows, 2 or 4, to one vector, in LLVM's language."""
    row = f"<{lanes} x i{bits}>"
    pair, whole = f"<{2 * lanes} x i{bits}>", f"<{rows * lanes} x i{bits}>"
    parameters = ", ".join(f"{row} %row{k}" for k in range(rows))
    joined = _mask(range(2 * lanes))
    lines, left, right, half = [], "%row0", "%row1", row
    if rows > 2:
        lines = [
            f"  %pair{k} = shufflevector {row} %row{2 * k}, {row} %row{2 * k + 1}, {joined}"
            for k in range(2)
        ]
        left, right, half = "%pair0", "%pair1", pair
    order = _mask(number * lanes + lane for lane in range(lanes) for number in range(rows))
    return "\n".join(
        [
            f"define linkonce_odr {whole} @{name}({parameters}) alwaysinline nounwind {{",
            *lines,
            f"  %all = shufflevector {half} {left}, {half} {right}, {order}",
            f"  ret {whole} %all",
            "}",
        ]
    )


def _mask(numbers: Iterable[int]) -> str:
    places = [f"i32 {number}" for number in numbers]
    return f"<{len(places)} x i32> <{', '.join(places)}>"
