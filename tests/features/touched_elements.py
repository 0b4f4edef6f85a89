"""Elements that a stage's accesses touch, by running its loops: slow and reliable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.dag.index import Index
from ansor.dag.stage import Access
from ansor.program.nest import LoopNest

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Touched:
    """Elements of one access at one depth: their number, and the size of their bounding box.

    Of a box that sticks out of the buffer (inlined padding) no more counts than the buffer's size.
    """

    distinct: int
    boxed: int


def loop_values(extents: list[int], frozen: int) -> list[Ints]:
    """Every iteration of the loops, the outermost `frozen` of them standing still at zero."""
    free = [1] * frozen + extents[frozen:]
    grid = np.indices(free).reshape(len(free), -1)
    return [values.astype(np.int64) for values in grid]


def axis_values(nest: LoopNest, stage: str, row: int, loops: list[Ints]) -> list[Ints]:
    """Value of each axis of a root stage: its parts are the digits of a number, outermost first.

    Axes that a step split in two follow, put together again.
    """
    own = nest.stages[stage]
    assert own.num_host == 0
    values: list[Ints] = [np.zeros_like(loops[0]) for _ in own.stage.axes]
    sizes = [1] * len(values)
    for loop, extent, digits in zip(own.loops, own.extents[:, row], loops, strict=True):
        values[loop.axis] = values[loop.axis] * int(extent) + digits
        sizes[loop.axis] *= int(extent)
    joined = [values[d.outer] * sizes[d.inner] + values[d.inner] for d in own.stage.derived]
    return values + joined


def index_values(index: Index, axes: list[Ints]) -> Ints:
    """An affine index, evaluated."""
    total = np.full_like(axes[0], index.const)
    for axis, factor in index.terms:
        assert isinstance(axis, int)
        total += factor * axes[axis]
    return total


def touched(nest: LoopNest, stage: str, access: Access, row: int, frozen: int) -> Touched:
    """Runs the loops of a root stage inside its outermost `frozen` ones."""
    own = nest.stages[stage]
    loops = loop_values(own.extents[:, row].tolist(), frozen)
    axes = axis_values(nest, stage, row, loops)
    known = [index for index in access.indices if index is not None]
    places = np.stack([index_values(index, axes) for index in known])
    shape = nest.population.sketch.dag.buffers[access.buffer].shape
    sides = places.max(axis=1) - places.min(axis=1) + 1
    fixed = [
        size if isinstance(size, int) else side for size, side in zip(shape, sides, strict=True)
    ]
    sides = np.minimum(sides, fixed)
    return Touched(len(np.unique(places, axis=1).T), int(sides.prod()))
