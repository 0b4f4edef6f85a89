"""The tables of tile sizes of a stage that an instruction on tiles computes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.config import SketchConfig
from ansor.dag import operands
from ansor.dag.graph import ComputeDAG
from ansor.dag.index import Index
from ansor.dag.stage import Stage, axes_of_access
from ansor.program.decision import Decision, divisors, factorisations, tailed
from ansor.program.tile_instructions import TILE_ROWS, TILE_WORDS
from ansor.sketch.tables import Tables, axis_hole
from ansor.sketch.tile_words import word_axes

_Table = npt.NDArray[np.int32]


@dataclass(frozen=True)
class TileAxes:
    """The axes of a stage along which an instruction works.

    Attributes:
        matrix: numbers of the axes, in the order of the innermost loops: one axis of rows, one or
            more of words, outermost first, and one of lanes. Panels in memory have that order.
        sizes: iterations of each axis in an instruction.
    """

    matrix: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def size(self) -> int:
        """Words that an instruction multiplies."""
        return math.prod(self.sizes)


def tile_axes(dag: ComputeDAG, name: str, words: int, loose: Collection[int]) -> TileAxes | None:
    """The axes of the largest tiles of a stage; None if no axis has rows.

    Args:
        name: of the stage, which adds up groups.
        words: number of the reduction axis that counts groups.
        loose: axes that tiles need not divide.
    """
    stage = dag.stages[name]
    lanes, depth = stage.spatial[-1], word_axes(dag, name, words)
    columns = _size(stage.axes[lanes].size, TILE_WORDS, lanes in loose)
    found = [
        TileAxes(
            (rows, *depth, lanes),
            (_size(stage.axes[rows].size, TILE_ROWS, rows in loose), *depth.values(), columns),
        )
        for rows in stage.spatial[:-1]
        if _has_rows(stage, rows, lanes)
    ]
    return max(found, key=lambda axes: (axes.sizes[0], axes.matrix[0]), default=None)


def tile_sizes(
    dag: ComputeDAG, name: str, axes: TileAxes, loose: Mapping[int, float], config: SketchConfig
) -> Tables:
    """Factors of every axis; factors of `loose` axes need not divide, see `tables.tiles`."""
    stage, structure = dag.stages[name], config.tile_structure
    batch, found = operands.batch_axes(dag, name), {}
    for number, axis in enumerate(stage.axes):
        parts = structure.count("R" if axis.reduce else "S")
        table = factorisations(axis.size, parts)
        if number in axes.matrix:
            size = axes.sizes[axes.matrix.index(number)]
            table = _of_instructions(axis.size, parts, size, loose.get(number), config)
        if not axis.reduce:
            most = 1 if number in batch else config.max_result_tiles
            table = table[table[:, parts - 1] <= most]
        found[number] = Decision(axis_hole(dag, name, number), name, table)
    return found


def _of_instructions(
    extent: int, parts: int, size: int, waste: float | None, config: SketchConfig
) -> _Table:
    """Factors of an axis; the last factor is `size`, the part of an instruction."""
    table = factorisations(extent // size, parts)
    if extent % size:
        tiles = [size * count for count in range(1, config.max_result_tiles + 1)]
        table = tailed(extent, parts, tiles, waste or 0.0)
        table[:, -1] //= size
    last = np.full((len(table), 1), size, dtype=np.int32)
    return np.concatenate([table, last], axis=1)


def _size(extent: int, most: int, loose: bool) -> int:
    """Iterations of an axis in one instruction, for the least number of instructions."""
    whole = max(d for d in divisors(extent) if d <= most)
    fewer = loose and extent > most and -(-extent // most) < extent // whole
    return most if fewer else whole


def _has_rows(stage: Stage, axis: int, lanes: int) -> bool:
    """Whether an axis moves, by a stride, only the operand that the lanes do not move."""
    moving = [read for read in stage.reads if axis in axes_of_access(read)]
    if len(moving) != 1 or lanes in axes_of_access(moving[0]):
        return False
    return all(_is_strided(index, axis) for index in moving[0].indices)


def _is_strided(index: Index | None, axis: int) -> bool:
    """Whether an index is affine in an axis, or does not depend on it."""
    if index is None:
        return False
    return all(isinstance(atom, int) or axis not in _axes(atom.index) for atom, _ in index.terms)


def _axes(index: Index) -> set[int]:
    found: set[int] = set()
    for atom, _ in index.terms:
        found |= {atom} if isinstance(atom, int) else _axes(atom.index)
    return found
