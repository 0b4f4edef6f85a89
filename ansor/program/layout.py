"""Packed layouts of constant operands: what `LayoutRewrite` does to shapes, indices and arrays."""

from __future__ import annotations

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
    """The layout ``[n / width, ..., width]`` of an array ``[..., n]``.

    With groups, it is ``[n / width, ..., width, elements]``, and dimension `dim` counts groups.

    Attributes:
        width: elements of a panel along the last dimension.
        dim: dimension whose neighbours form groups; not the last one.
        elements: of a group, 1 for none.
    """

    width: int
    dim: int = 0
    elements: int = 1

    def index(self, index: tuple[Any, ...]) -> list[Any]:
        """Where the element at an index lies; works for numbers and for expressions."""
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
        return (shape[-1] // self.width, *outer, *inner)

    def pack(self, array: Array) -> Array:
        """The array in this layout, contiguous."""
        split = array.reshape(*array.shape[:-1], array.shape[-1] // self.width, self.width)
        panels = np.moveaxis(split, -2, 0)
        if self.elements > 1:
            dim, sizes = self.dim + 1, panels.shape
            groups = (*sizes[:dim], sizes[dim] // self.elements, self.elements, *sizes[dim + 1 :])
            panels = np.moveaxis(panels.reshape(groups), dim + 1, -1)
        return np.ascontiguousarray(panels)


def layout_of(step: LayoutRewrite, width: int) -> PackedLayout:
    """The layout that a step asks for with panels of a width."""
    if isinstance(step, GroupedLayout):
        return PackedLayout(width, step.dim, step.elements)
    return PackedLayout(width)


def packings(program: Program) -> dict[str, PackedLayout]:
    """Buffers that the program wants packed, with their layouts."""
    return {
        step.buffer: layout_of(step, program.values[step.hole][0])
        for step in program.steps
        if isinstance(step, LayoutRewrite) and program.values[step.hole][0] > 0
    }


def packed_arrays(program: Program, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays as the program wants them, by buffer name, in the same order."""
    layouts = packings(program)
    return {
        name: layouts[name].pack(array) if name in layouts else array
        for name, array in arrays.items()
    }
