"""Functions on tiles in memory, for processors that have no registers of that kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ansor.lowering.dot_functions import DotFunction, llvm_text
from ansor.lowering.tiles.registers import PREFIX, WORD_BYTES, TileFunction, TileRegisters
from ansor.program.tile_instructions import ROW_BYTES, TILE_BYTES, TILE_WORDS

_LLVM_TYPES = {"float32": "float", "int32": "i32"}
_WORDS = f"<{TILE_WORDS} x i32>"
_COPY = "llvm.memcpy.inline.p0.p0.i64"


@dataclass(frozen=True)
class PlainTiles:
    """Functions that take an array of eight tiles, see `TileSet`.

    Attributes:
        dot: the function for a group of one lane.
        registers: the contents of the tiles.
        has: tests the target's features by LLVM's names.
    """

    dot: DotFunction
    registers: TileRegisters
    has: Callable[[str], bool]

    def zero(self, tile: int) -> TileFunction:
        """See `TileSet`."""
        rows, _ = self.registers.size(tile)
        store = f"  store {_WORDS} zeroinitializer, ptr %inside, align 4"
        return _rows(f"zero_{tile}_{rows}", "ptr %tiles", tile, rows, [store])

    def load(self, tile: int) -> TileFunction:
        """See `TileSet`."""
        return self._move("load", tile, "%inside", "%outside")

    def store(self, tile: int) -> TileFunction:
        """See `TileSet`."""
        return self._move("store", tile, "%outside", "%inside")

    def _move(self, name: str, tile: int, target: str, source: str) -> TileFunction:
        rows, row_bytes = self.registers.size(tile)
        copied = f"ptr align 1 {target}, ptr align 1 {source}, i64 {row_bytes}, i1 false"
        body = [
            "  %offset = mul i64 %row, %stride",
            "  %outside = getelementptr i8, ptr %memory, i64 %offset",
            f"  call void @{_COPY}({copied})",
        ]
        parameters = "ptr %tiles, ptr %memory, i64 %stride"
        made = _rows(f"{name}_{tile}_{rows}x{row_bytes}", parameters, tile, rows, body)
        return replace(made, needed=(f"declare void @{_COPY}(ptr, ptr, i64, i1)",))

    def multiply(self, result: int, left: int, right: int) -> TileFunction:
        """See `TileSet`."""
        dot = replace(self.dot, lanes=TILE_WORDS)
        total = f"<{TILE_WORDS} x {_LLVM_TYPES[dot.instruction.total]}>"
        rows, words = self.registers.rows, self.registers.words
        body = [
            f"  %row = udiv i64 %step, {words}",
            f"  %word = urem i64 %step, {words}",
            *_place("sum", result, "%row", "0"),
            *_place("left", left, "%row", "%word"),
            *_place("right", right, "%word", "0"),
            f"  %sum = load {total}, ptr %sum.at, align 4",
            "  %left = load i32, ptr %left.at, align 4",
            f"  %right = load {_WORDS}, ptr %right.at, align 4",
            f"  %new = call {total} @{dot.name}({total} %sum, i32 %left, {_WORDS} %right)",
            f"  store {total} %new, ptr %sum.at, align 4",
        ]
        name = f"{dot.name}_{result}_{left}_{right}_{rows}x{words}"
        made = _loop(name, "ptr %tiles", "step", rows * words, body)
        return replace(made, needed=(llvm_text([dot], self.has),))


def _place(name: str, tile: int, row: str, word: str) -> list[str]:
    """The address of a word of a tile, as a variable."""
    return [
        f"  %{name}.row = mul i64 {row}, {ROW_BYTES}",
        f"  %{name}.word = mul i64 {word}, {WORD_BYTES}",
        f"  %{name}.first = add i64 %{name}.row, {TILE_BYTES * tile}",
        f"  %{name}.byte = add i64 %{name}.first, %{name}.word",
        f"  %{name}.at = getelementptr i8, ptr %tiles, i64 %{name}.byte",
    ]


def _rows(name: str, parameters: str, tile: int, rows: int, body: list[str]) -> TileFunction:
    """A loop over the rows of a tile; `%inside` is a row in the array."""
    place = [
        f"  %first = mul i64 %row, {ROW_BYTES}",
        f"  %byte = add i64 %first, {TILE_BYTES * tile}",
        "  %inside = getelementptr i8, ptr %tiles, i64 %byte",
    ]
    return _loop(name, parameters, "row", rows, [*place, *body])


def _loop(name: str, parameters: str, variable: str, count: int, body: list[str]) -> TileFunction:
    symbol = f"{PREFIX}_plain_{name}"
    lines = [
        f"define linkonce_odr void @{symbol}({parameters}) nounwind {{",
        "entry:",
        "  br label %loop",
        "loop:",
        f"  %{variable} = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *body,
        f"  %next = add i64 %{variable}, 1",
        f"  %more = icmp ult i64 %next, {count}",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return TileFunction(symbol, "\n".join(lines))
