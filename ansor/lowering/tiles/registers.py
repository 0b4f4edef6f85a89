"""The tiles of a nest of loops: their sizes and contents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

PREFIX = "ansor_tile"  # of all symbols
WORD_BYTES = 4


@dataclass(frozen=True)
class TileRegisters:
    """The contents of each tile.

    Attributes:
        rows: of left operands and of results.
        lanes: of right operands and of results.
        words: of a row of a left operand, and rows of a right one.
        results: tiles 0 to `results` - 1 hold results.
        left: the tiles that hold left operands. The others hold right ones.
    """

    rows: int
    lanes: int
    words: int
    results: int
    left: tuple[int, ...]

    def size(self, tile: int) -> tuple[int, int]:
        """Rows of a tile, and bytes of a row."""
        if tile < self.results:
            return self.rows, WORD_BYTES * self.lanes
        if tile in self.left:
            return self.rows, WORD_BYTES * self.words
        return self.words, WORD_BYTES * self.lanes


@dataclass(frozen=True)
class TileFunction:
    """One function.

    Attributes:
        name: its symbol.
        text: its definition.
        needed: other definitions and declarations.
    """

    name: str
    text: str
    needed: tuple[str, ...] = ()


def text_of(functions: Iterable[TileFunction]) -> str:
    """The definitions of functions, each once."""
    found = list(dict.fromkeys(functions))
    needed = dict.fromkeys(text for function in found for text in function.needed)
    return "\n".join([*needed, *(function.text for function in found)])


class TileSet(Protocol):
    """The functions of one form. Their first argument is the array of tiles, if there is one.

    Attributes:
        registers: the contents of the tiles.
    """

    @property
    def registers(self) -> TileRegisters: ...

    def zero(self, tile: int) -> TileFunction:
        """Sets a tile to zeros."""
        ...

    def load(self, tile: int) -> TileFunction:
        """Loads a tile from rows in memory; takes an address, and the bytes between rows."""
        ...

    def store(self, tile: int) -> TileFunction:
        """Stores a tile; takes the same."""
        ...

    def multiply(self, result: int, left: int, right: int) -> TileFunction:
        """Adds the product of two tiles to a third."""
        ...
