"""The loops of a stage before any number is chosen, shared by both interpreters of a sketch.

A structure is a string, outermost level first. "S" is a level of all spatial axes, "R" a level of
all reduction axes. "F" are the folded axes, all of them unrolled. "V" is the vectorised part of the
vector axis. "T" are the rows, columns and reduction of a tensor unit's instruction. An "S" that
ends a structure is the register tile: unrolled, its last loop vectorised.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ansor.dag.stage import Stage
from ansor.program.steps import MultiLevelTile, RegisterTile, StripMine, TensorTile

Ints = TypeVar("Ints", int, npt.NDArray[np.int32], npt.NDArray[np.int64])
Shape = MultiLevelTile | RegisterTile | StripMine

SIMPLE = "SRFV"  # a stage that is not tiled
REGISTER_TILE = "SRS"  # a tiled stage inside the loops of another


@dataclass(frozen=True)
class Loop:
    """Part `part` (0 is the outermost) of axis `axis` of the stage."""

    axis: int
    part: int
    reduce: bool


def own_loops(stage: Stage, shape: Shape | None) -> tuple[Loop, ...]:
    """A stage's loops, outermost first; without a shape as those of an attached stage."""
    vector = shape.axis if isinstance(shape, StripMine) else vector_axis(stage)
    matrix = shape.matrix if isinstance(shape, TensorTile) else ()
    return _loops(stage, structure_of(shape), vector, matrix)


def structure_of(shape: Shape | None) -> str:
    """The structure that a shape gives a stage."""
    if isinstance(shape, MultiLevelTile):
        return shape.structure
    return REGISTER_TILE if isinstance(shape, RegisterTile) else SIMPLE


def _loops(
    stage: Stage, structure: str, vector: int | None, matrix: tuple[int, ...]
) -> tuple[Loop, ...]:
    parts = dict.fromkeys(range(len(stage.axes)), 0)
    loops: list[Loop] = []
    for level in structure:
        for axis in matrix if level == "T" else _axes(stage, level, vector):
            loops.append(Loop(axis, parts[axis], stage.axes[axis].reduce))
            parts[axis] += 1
    return tuple(loops)


def _axes(stage: Stage, level: str, vector: int | None) -> list[int]:
    """The axes of one level of a structure, in the order of their loops."""
    if level == "V":
        return [] if vector is None else [vector]
    if level == "F":
        return [axis for axis in (*stage.reduce, *stage.spatial) if axis in stage.folded]
    axes = stage.spatial if level == "S" else stage.reduce
    return [axis for axis in axes if axis not in stage.folded]


def vector_axis(stage: Stage) -> int | None:
    """The axis along which a stage is vectorised by default: the last spatial one."""
    axes = _axes(stage, "S", None)
    return axes[-1] if axes else None


def num_leading(stage: Stage) -> int:
    """Number of loops that may be fused and run on all cores: the outermost spatial level."""
    return len(_axes(stage, "S", None))


def enclosing_loops(stage: Stage, structure: str) -> int:
    """Number of a tiled stage's loops outside its second reduction level."""
    level = structure.index("R") + 1
    return structure[:level].count("S") * num_leading(stage) + len(_axes(stage, "R", None))


def unrolled_loops(stage: Stage, shape: Shape | None, bound: bool = False) -> list[int]:
    """Numbers of the loops that are unrolled: the register tile, an instruction's and folded axes.

    For tiles of a GPU's threads (`bound`), these are all loops within the innermost reduction
    levels.
    """
    loops, structure = own_loops(stage, shape), structure_of(shape)
    found = [i for i, loop in enumerate(loops) if loop.axis in stage.folded]
    if bound and isinstance(shape, MultiLevelTile):
        inner = enclosing_loops(stage, structure) + len(_axes(stage, "R", None))
        instruction = len(shape.matrix) if isinstance(shape, TensorTile) else 0
        return list(range(inner, len(loops) - instruction))
    if isinstance(shape, TensorTile):
        return list(range(len(loops) - len(shape.matrix) - num_leading(stage), len(loops)))
    if structure.endswith("S"):
        count = num_leading(stage)
        found += range(len(loops) - count, len(loops) - 1)
    return found


def row_alignment(item_bytes: int, pad: int = 1) -> tuple[int, int]:
    """A factor and an offset, in elements, of the distance between rows in shared memory.

    A distance of a multiple of the factor plus the offset puts `pad` vectors of each row in
    different banks, which threads read at the same time. Vectors of 16 bytes stay aligned."""
    vector = max(1, 16 // item_bytes)
    return 2 * pad * vector, pad * vector


def padded_row(length: Ints, item_bytes: int, pad: Ints) -> Ints:
    """Distance of rows of a length in shared memory, in elements; without a pad, the length."""
    factor, offset = row_alignment(item_bytes)
    row: Ints = length + (offset * pad - length) % np.maximum(factor * pad, 1)
    return row


@lru_cache(maxsize=64)
def lane_table(most: int, register: int, size: int) -> npt.NDArray[np.int32]:
    """`[size + 1]`: number of lanes that `Vectorize` uses for each extent."""
    table = divisor_table(most, size)[most].copy()
    extents = np.arange(size + 1)
    if register:
        widths = np.arange(register, most + 1, register, dtype=np.int32)
        waste = -(-extents[:, None] // widths) * widths - extents[:, None]
        fits = np.where(widths <= extents[:, None], waste, np.iinfo(np.int32).max)
        best = widths[::-1][fits[:, ::-1].argmin(axis=1)]
        table = np.where((table < register) & (extents > register), best, table)
    out: npt.NDArray[np.int32] = table.astype(np.int32)
    return out


@lru_cache(maxsize=64)
def divisor_table(most: int, size: int) -> npt.NDArray[np.int32]:
    """`[most + 1, size + 1]`: the largest divisor of each extent that is at most each limit."""
    table = np.ones((most + 1, size + 1), dtype=np.int32)
    for limit in range(2, most + 1):
        table[limit] = table[limit - 1]
        table[limit, limit::limit] = limit
    return table


def largest_divisor(extent: int, most: int) -> int:
    """The largest divisor of `extent` that is at most `most`."""
    return int(divisor_table(most, extent)[most, extent])
