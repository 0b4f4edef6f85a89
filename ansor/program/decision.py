"""`Decision`: a hole of a sketch with its table of choices, and the neighbours of each choice.

Deviation: the paper draws tile sizes while it samples a program. Here a table lists them before,
and no table depends on another decision. Every row of a population can therefore be replayed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from ansor.config import NEIGHBOURS

IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Decision:
    """A hole.

    Attributes:
        name: the hole's name, unique in its sketch.
        stage: the stage that owns it (node-based crossover moves a stage's decisions together).
        table: `[C, arity] int32`, one row per choice: the factors of a tile, or one category.
        ordered: whether categories have an order; otherwise all are neighbours of each other.
    """

    name: str
    stage: str
    table: IntArray
    ordered: bool = True

    @property
    def size(self) -> int:
        """Number of choices."""
        return len(self.table)

    @cached_property
    def neighbours(self) -> IntArray:
        """`[C, K] int32`: neighbours of each choice. The choice itself fills the end of a row.

        Neighbours of a tile have a prime factor moved between two levels, by the smallest ratio.
        Neighbours of a category are the entries before and after, or all entries without an order.
        """
        ids = np.arange(self.size)
        if not self.ordered:
            steps = np.arange(1, max(self.size, 2))
            return ((ids[:, None] + steps) % self.size).astype(np.int32)
        if self.table.shape[1] == 1:
            pair = np.stack([np.maximum(ids - 1, 0), np.minimum(ids + 1, self.size - 1)], axis=1)
            return pair.astype(np.int32)
        return _tile_neighbours(self.table)

    def find(self, row: tuple[int, ...]) -> int | None:
        """Position of a choice in the table, None if the table does not hold it."""
        if len(row) != self.table.shape[1]:
            return None
        hits = np.flatnonzero((self.table == np.asarray(row, dtype=np.int32)).all(axis=1))
        return int(hits[0]) if len(hits) else None

    def nearest(self, row: tuple[int, ...]) -> int | None:
        """Position of the choice most like `row`, which may be of another extent.

        Tiles are compared by the ratios of their factors. The innermost factor has the largest
        weight, because it fills vectors and registers. The outermost factor is the rest of the
        extent. The result is None for a row of another length.
        """
        if len(row) != self.table.shape[1]:
            return None
        ratios = np.abs(np.log2(self.table + 1) - np.log2(np.asarray(row) + 1))
        if len(row) > 1:
            ratios[:, 0] *= NEIGHBOURS.outermost_weight
            ratios[:, -1] *= NEIGHBOURS.innermost_weight
        return int(ratios.sum(axis=1).argmin())


def category(name: str, stage: str, values: tuple[int, ...], ordered: bool = True) -> Decision:
    """A decision between plain integers."""
    return Decision(name, stage, np.asarray(values, dtype=np.int32)[:, None], ordered)


@lru_cache(maxsize=4096)
def factorisations(extent: int, parts: int) -> IntArray:
    """All ordered ways to write `extent` as a product of `parts` factors, `[C, parts] int32`.

    For an axis without iterations, the first factor is 0.
    """
    if extent == 0:
        return np.array([[0] + [1] * (parts - 1)], dtype=np.int32)
    if parts == 1:
        return np.array([[extent]], dtype=np.int32)
    rows = [
        np.concatenate([np.full((len(rest), 1), first, dtype=np.int32), rest], axis=1)
        for first in divisors(extent)
        for rest in [factorisations(extent // first, parts - 1)]
    ]
    return np.concatenate(rows)


def tailed(
    extent: int, parts: int, tiles: Iterable[int], waste: float, spare: bool = False
) -> IntArray:
    """Factors that multiply to more than `extent`, `[C, parts] int32`: tiles that do not divide it.

    The last column is one of `tiles`, the column before is 1, and the product of the others is the
    number of tiles. At most the share `waste` of the extent is computed twice. If no tile allows
    this, the table has the tiles with the least share, unless `spare` is set.
    """
    counts = {t: -(-extent // t) for t in tiles if t <= extent and extent % t}
    least = min((t * count for t, count in counts.items()), default=0)
    most = max(extent * (1 + waste), 0 if spare else least)
    rows = [
        np.concatenate([outer, np.tile(np.array([[1, t]]), (len(outer), 1))], axis=1)
        for t, count in counts.items()
        for outer in [factorisations(count, parts - 2)]
        if t * count <= most
    ]
    empty = np.empty((0, parts), dtype=np.int32)
    return np.concatenate([empty, *rows]).astype(np.int32)


@lru_cache(maxsize=4096)
def divisors(extent: int) -> tuple[int, ...]:
    """Divisors in ascending order."""
    small = [d for d in range(1, int(extent**0.5) + 1) if extent % d == 0]
    return tuple(sorted({*small, *(extent // d for d in small)}))


def _tile_neighbours(table: IntArray) -> IntArray:
    """Rows that differ in exactly two columns by the least ratio, and the closest rows with another
    product, if products differ."""
    where = {tuple(row): i for i, row in enumerate(table.tolist())}
    lists = [_moves(row, i, where) for i, row in enumerate(table.tolist())]
    lists = [moves + list(near) for moves, near in zip(lists, _closest(table), strict=True)]
    width = max((len(moves) for moves in lists), default=1) or 1
    out = np.empty((len(table), width), dtype=np.int32)
    for i, moves in enumerate(lists):
        out[i] = np.resize(np.asarray(moves or [i], dtype=np.int32), width)
    return out


def _closest(table: IntArray) -> list[tuple[int, ...]]:
    """For each row, the most similar rows with another product."""
    products = table.prod(axis=1)
    if (products == products[0]).all():
        return [()] * len(table)
    logs = np.log2(table)
    found = []
    for row, product in enumerate(products):
        others = np.flatnonzero(products != product)
        distance = np.abs(logs[others] - logs[row]).sum(axis=1)
        nearest = np.argsort(distance, kind="stable")[: NEIGHBOURS.closest]
        found.append(tuple(others[nearest].tolist()))
    return found


def _moves(row: list[int], own: int, where: dict[tuple[int, ...], int]) -> list[int]:
    """Choices reached by moving one prime factor from one column to another."""
    found = []
    for source, value in enumerate(row):
        for prime in _primes(value):
            for target in range(len(row)):
                moved = list(row)
                moved[source] //= prime
                moved[target] *= prime
                hit = where.get(tuple(moved), own)
                if target != source and hit != own:
                    found.append(hit)
    return found


@lru_cache(maxsize=4096)
def _primes(value: int) -> tuple[int, ...]:
    """Distinct prime factors."""
    return tuple(d for d in divisors(value) if d > 1 and len(divisors(d)) == 2)
