"""Packed layouts of constant operands: their shapes, indices and arrays, see `LayoutRewrite`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ansor.program.program import Program
from ansor.program.steps import GroupedLayout, LayoutRewrite

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PackedLayout:
    """The layout ``[places / width, ..., width]`` of an array ``[..., n]``.

    With groups, it is ``[places / width, ..., width, elements]``; dimension `dim` counts groups.

    A column is an index of the last dimension. Columns have places in the order of tiles. If tiles
    do not divide the columns, the last tile begins earlier, see
    `ansor.lowering.passes.shifted_tails`. It has separate places, so the columns that it shares
    with the tile before have two places. No register of a tile then spans two panels. Zeros fill
    the last panel.

    Attributes:
        width: elements of a panel along the last dimension. A panel of all columns keeps their
            order.
        dim: dimension whose neighbours form groups; not the last one.
        elements: of a group, 1 for none.
        tile: columns of a tile, 0 for no tiles.
    """

    width: int
    dim: int = 0
    elements: int = 1
    tile: int = 0

    def has_tiles(self, columns: int) -> bool:
        """Whether columns have the order of tiles."""
        return self.tile > 0 and self.width != columns

    def places(self, columns: int) -> int:
        """Places of an array with `columns` columns, in whole panels."""
        return -(-len(self._columns_at_places(columns)) // self.width) * self.width

    def index(self, index: tuple[Any, ...]) -> list[Any]:
        """The packed index of an element. The last part of its index is a place. Works for numbers
        and for expressions."""
        outer, inner = list(index[:-1]), [index[-1] % self.width]
        if self.elements > 1:
            inner.append(outer[self.dim] % self.elements)
            outer[self.dim] = outer[self.dim] // self.elements
        return [index[-1] // self.width, *outer, *inner]

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Sizes of the packed array."""
        outer, inner = list(shape[:-1]), [self.width]
        if self.elements > 1:
            outer[self.dim] //= self.elements
            inner.append(self.elements)
        return (self.places(shape[-1]) // self.width, *outer, *inner)

    def pack(self, array: Array) -> Array:
        """The array in this layout, contiguous."""
        placed = self._placed(array)
        split = placed.reshape(*array.shape[:-1], placed.shape[-1] // self.width, self.width)
        panels = np.moveaxis(split, -2, 0)
        if self.elements > 1:
            dim, sizes = self.dim + 1, panels.shape
            groups = (*sizes[:dim], sizes[dim] // self.elements, self.elements, *sizes[dim + 1 :])
            panels = np.moveaxis(panels.reshape(groups), dim + 1, -1)
        return np.ascontiguousarray(panels)

    def _placed(self, array: Array) -> Array:
        """The columns of an array at their places, then zeros."""
        columns, places = self._columns_at_places(array.shape[-1]), self.places(array.shape[-1])
        if places == array.shape[-1]:
            return array
        placed = np.zeros((*array.shape[:-1], places), array.dtype)
        placed[..., : len(columns)] = array[..., columns]
        return placed

    def _columns_at_places(self, columns: int) -> npt.NDArray[np.int64]:
        """The number of the column at each place before the zeros."""
        if not self.has_tiles(columns):
            return np.arange(columns)
        places = np.arange(-(-columns // self.tile) * self.tile)
        places[-self.tile :] -= len(places) - columns
        return places


def layout_of(step: LayoutRewrite, values: Mapping[str, tuple[int, ...]]) -> PackedLayout | None:
    """The layout of a step, None for the plain one.

    Args:
        values: of the program's holes.
    """
    (width,) = values[step.hole]
    if width == 0:
        return None
    tile = math.prod(values[step.tiles][-2:]) if step.tiles in values else 0
    if isinstance(step, GroupedLayout):
        return PackedLayout(width, step.dim, step.elements, tile)
    return PackedLayout(width, tile=tile)


def packings(program: Program) -> dict[str, PackedLayout]:
    """Buffers that the program reads packed, with their layouts."""
    steps = (step for step in program.steps if isinstance(step, LayoutRewrite))
    found = {step.buffer: layout_of(step, program.values) for step in steps}
    return {buffer: layout for buffer, layout in found.items() if layout is not None}


def packed_arrays(program: Program, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays in the program's layouts, by buffer name, in the same order."""
    layouts = packings(program)
    return {
        name: layouts[name].pack(array) if name in layouts else array
        for name, array in arrays.items()
    }
