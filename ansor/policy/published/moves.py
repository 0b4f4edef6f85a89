"""The graph of a decision's choices: edges are single steps.

Tiles are adjacent if one prime factor has moved from one loop to another (OpEvo, G-BFS). Ordered
categories form a line. All other categories are adjacent to each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ansor.program.decision import Decision, IntArray, divisors
from ansor.program.sketch import Sketch


def action_table(decision: Decision) -> IntArray:
    """`[C, A] int32`: the choice that each of A actions leads to; the choice itself where the
    action is not possible. An action means the same for every choice."""
    if decision.table.shape[1] > 1:
        return _tile_actions(decision)
    ids = np.arange(decision.size, dtype=np.int32)
    if decision.ordered:
        return np.stack([np.maximum(ids - 1, 0), np.minimum(ids + 1, ids[-1])], axis=1)
    return np.tile(ids, (decision.size, 1))


def _tile_actions(decision: Decision) -> IntArray:
    """One prime from one loop to another; then the closest tiles with another product, which no
    such action reaches."""
    table = decision.table
    where = {tuple(row): i for i, row in enumerate(table.tolist())}
    loops = range(table.shape[1])
    columns = [
        _moved(table, where, prime, source, target)[:, None]
        for prime in _primes(table)
        for source in loops
        for target in loops
        if source != target
    ]
    return np.concatenate([*columns, _other_products(decision)], axis=1)


def _moved(
    table: IntArray, where: dict[tuple[int, ...], int], prime: int, source: int, target: int
) -> IntArray:
    """`[C]`: the tile after a prime has moved from one loop to another."""
    reached = np.arange(len(table), dtype=np.int32)
    able = np.flatnonzero((table[:, source] > 0) & (table[:, source] % prime == 0))
    changed = table[able].copy()
    changed[:, source] //= prime
    changed[:, target] *= prime
    pairs = zip(changed.tolist(), able.tolist(), strict=True)
    reached[able] = [where.get(tuple(row), choice) for row, choice in pairs]
    return reached


def _primes(table: IntArray) -> list[int]:
    """The prime factors of all entries."""
    factors = {d for value in np.unique(table).tolist() if value > 0 for d in divisors(value)}
    return sorted(d for d in factors if len(divisors(d)) == 2)


def _other_products(decision: Decision) -> IntArray:
    """`[C, K]`: neighbours with another product, and the choice itself in the other places."""
    products = decision.table.prod(axis=1)
    near, ids = decision.neighbours, np.arange(decision.size, dtype=np.int32)[:, None]
    if (products == products[0]).all():
        return ids[:, :0]
    return np.where(products[near] != products[:, None], near, ids).astype(np.int32)


class ChoiceGraph:
    """The choices of a decision and their neighbours.

    Attributes:
        actions: `[C, A] int32`, see `action_table`.
        near: `[C, K] int32`: the distinct neighbours of each choice, then undefined values.
        degree: `[C] int64`: number of neighbours of each choice.
    """

    def __init__(self, decision: Decision) -> None:
        self.actions = action_table(decision)
        ids = np.arange(decision.size, dtype=np.int32)[:, None]
        near = np.sort(np.concatenate([ids, self.actions], axis=1), axis=1)
        repeated = np.zeros(near.shape, dtype=np.bool_)
        repeated[:, 1:] = near[:, 1:] == near[:, :-1]
        repeated |= near == ids
        order = np.argsort(repeated, axis=1, kind="stable")
        self.near: IntArray = np.take_along_axis(near, order, axis=1)
        self.degree: npt.NDArray[np.int64] = (~repeated).sum(axis=1)

    def walked(self, choices: IntArray, q: float, rng: np.random.Generator) -> IntArray:
        """`[P] int32`: the ends of q-random walks from `choices [P]`. The number of their steps has
        the geometric distribution ``(1 - q) q^k`` (OpEvo, definition of the q-random walk)."""
        ends: IntArray = choices.copy()
        going = np.flatnonzero((rng.random(len(ends)) < q) & (self.degree[ends] > 0))
        while len(going):
            at = ends[going]
            ends[going] = self.near[at, rng.integers(0, self.degree[at])]
            going = going[rng.random(len(going)) < q]
        return ends


class SketchGraph:
    """The programs of a sketch: two are adjacent if one decision differs by one step.

    Attributes:
        decisions: the graph of each decision.
        column: `[N] int64`: the decision of each action of the sketch.
    """

    def __init__(self, sketch: Sketch) -> None:
        self.decisions: Sequence[ChoiceGraph] = [ChoiceGraph(d) for d in sketch.decisions]
        widths = [graph.actions.shape[1] for graph in self.decisions]
        self.column = np.repeat(np.arange(len(widths)), widths)

    def reached(self, rows: IntArray) -> IntArray:
        """`[P, N] int32`: the new choice of each action's decision in `rows [P, D]`."""
        parts = [g.actions[rows[:, column]] for column, g in enumerate(self.decisions)]
        return np.concatenate([np.empty((len(rows), 0), dtype=np.int32), *parts], axis=1)

    def after(self, rows: IntArray, actions: npt.NDArray[np.int64]) -> IntArray:
        """`[P, D] int32`: each of `rows` after its action of `actions [P]`."""
        changed: IntArray = rows.copy()
        number = np.arange(len(rows))
        changed[number, self.column[actions]] = self.reached(rows)[number, actions]
        return changed

    def neighbours(self, row: IntArray) -> IntArray:
        """`[N, D] int32`: the rows that are adjacent to `row [D]`, each once."""
        rows = [row[None, :][:0]]
        for column, graph in enumerate(self.decisions):
            near = graph.near[row[column], : graph.degree[row[column]]]
            moved = np.repeat(row[None], len(near), axis=0)
            moved[:, column] = near
            rows.append(moved)
        return np.concatenate(rows)

    def walked(self, rows: IntArray, q: float, rng: np.random.Generator) -> IntArray:
        """`[P, D] int32`: `rows` after a q-random walk of every decision."""
        ends = [g.walked(rows[:, column], q, rng) for column, g in enumerate(self.decisions)]
        return np.stack(ends, axis=1) if ends else rows
