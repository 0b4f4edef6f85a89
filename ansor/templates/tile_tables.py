"""The tables of tiles that a split may choose from (AutoTVM's policies)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import prod

import numpy as np

from ansor.errors import ArgumentError
from ansor.program.decision import IntArray, divisors

POLICIES = ("factors", "power2", "verbose")


def tile_table(
    extent: int, parts: int, policy: str, max_factor: int | None = None, no_tail: bool | None = None
) -> IntArray:
    """All tiles of a loop, `[C, parts] int32`, outermost first; the first row splits nothing.

    Args:
        extent: of the loop.
        parts: number of loops after the split.
        policy: "factors" takes divisors; "power2" powers of two up to the extent; "verbose" both.
        max_factor: the largest of all factors but the outermost.
        no_tail: whether factors multiply to the extent; by default with "factors" alone. Otherwise
            the outermost loop also counts an incomplete tile.

    Raises:
        ArgumentError: there is no such policy.
    """
    if policy not in POLICIES:
        raise ArgumentError("policy", policy, f"must be one of {', '.join(POLICIES)}")
    exact = policy == "factors" if no_tail is None else no_tail
    most = extent if max_factor is None else max_factor
    sizes = sorted(size for size in _sizes(extent, policy) if size <= most)
    rows = [
        (-(-extent // prod(inner)), *inner)
        for inner in _products(sizes, parts - 1, extent)
        if extent % prod(inner) == 0 or (not exact and prod(inner) < extent)
    ]
    return np.asarray(rows, dtype=np.int32).reshape(-1, parts)


def listed_tiles(extent: int, candidates: Sequence[Sequence[int]], parts: int) -> IntArray:
    """The tiles that a user lists, `[C, parts] int32`; an outermost -1 is the rest of the extent.

    Raises:
        ArgumentError: a tile has another number of factors.
    """
    rows = []
    for tile in candidates:
        if len(tile) != parts:
            raise ArgumentError("candidates", tuple(tile), f"a tile needs {parts} factors")
        outer, inner = tile[0], [int(size) for size in tile[1:]]
        rows.append((-(-extent // prod(inner)) if outer == -1 else int(outer), *inner))
    return np.asarray(rows, dtype=np.int32).reshape(-1, parts)


def _sizes(extent: int, policy: str) -> Collection[int]:
    powers = {1 << bits for bits in range(extent.bit_length())} if policy != "factors" else set()
    return powers | (set(divisors(extent)) if policy != "power2" else set())


def _products(sizes: Sequence[int], count: int, most: int) -> Iterator[tuple[int, ...]]:
    """All tuples of so many sizes whose product is at most `most`."""
    if count == 0:
        yield ()
        return
    for size in sizes:
        if size > most:
            return
        for rest in _products(sizes, count - 1, most // size):
            yield (size, *rest)
