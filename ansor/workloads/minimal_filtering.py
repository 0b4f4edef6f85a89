"""Winograd's minimal filtering F(m×m, r×r) as stages: separable transforms around products.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016), section 4. With a
stride of 2, even and odd inputs are filtered apart, after Huang et al., "DWM: A Decomposable
Winograd Method for Convolution Acceleration" (AAAI 2020): by two taps and by one. So are even and
odd outputs of the transpose of such a convolution: each meets two of its four taps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from tvm import te, tirx, topi

from ansor.workloads.workload import Array

Matrix = tuple[tuple[float, ...], ...]
_MOST_WASTE = 0.35  # of the output's points computed in vain, where it is no whole number of tiles


@dataclass(frozen=True)
class Transform:
    """The matrices of F(m×m, r×r), equation 8 of the paper; a tile takes d inputs a side.

    Attributes:
        data: `[s, d]`, B transposed.
        weight: `[s, r]`, G.
        output: `[m, s]`, A transposed.
        stride: of the convolution.
        is_transposed: whether it is the transpose of a convolution, with a padding of one, of
            which two outputs begin at each input.
    """

    data: Matrix
    weight: Matrix
    output: Matrix
    stride: int = 1
    is_transposed: bool = False

    @property
    def taps(self) -> int:
        """Those of a kernel along each side (r)."""
        return len(self.weight[0])

    @property
    def inputs(self) -> int:
        """Those of a tile along each side (d)."""
        return len(self.data[0])

    @property
    def step(self) -> int:
        """Inputs from one tile to the next."""
        return self.tile // self.stride if self.is_transposed else self.tile * self.stride

    @property
    def tile(self) -> int:
        """Outputs along each side (m)."""
        return len(self.output)

    @property
    def size(self) -> int:
        """Points at which is multiplied, along each side (s)."""
        return len(self.data)


F2 = Transform(
    data=((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    weight=((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
    output=((1, 1, 1, 0), (0, 1, -1, -1)),
)
F3 = Transform(
    data=(
        (2, -1, -2, 1, 0),
        (0, -2, -1, 1, 0),
        (0, 2, -3, 1, 0),
        (0, -1, 0, 1, 0),
        (0, 2, -1, -2, 1),
    ),
    weight=(
        (1 / 2, 0, 0),
        (-1 / 2, -1 / 2, -1 / 2),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 6, 1 / 3, 2 / 3),
        (0, 0, 1),
    ),
    output=((1, 1, 1, 1, 0), (0, 1, -1, 2, 0), (0, 1, 1, 4, 1)),
)
F4 = Transform(
    data=(
        (4, 0, -5, 0, 1, 0),
        (0, -4, -4, 1, 1, 0),
        (0, 4, -4, -1, 1, 0),
        (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
    weight=(
        (1 / 4, 0, 0),
        (-1 / 6, -1 / 6, -1 / 6),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6),
        (0, 0, 1),
    ),
    output=((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
)
# F(2, 2) on inputs 0, 2 and 4, and what 1 and 3 are multiplied by.
F2_STRIDE2 = Transform(
    data=((1, 0, -1, 0, 0), (0, 0, 1, 0, 0), (0, 0, 1, 0, -1), (0, 1, 0, 0, 0), (0, 0, 0, 1, 0)),
    weight=((1, 0, 0), (1, 0, 1), (0, 0, 1), (0, 1, 0), (0, 1, 0)),
    output=((1, 1, 0, 1, 0), (0, 1, -1, 0, 1)),
    stride=2,
)


def _of_both_phases(data: Matrix, weight: Matrix, output: Matrix) -> Transform:
    """The transpose of a convolution by four taps with a stride of 2, from F(m, 2).

    Even outputs meet the last tap and the second, odd ones the third and the first, one input
    further on.
    """
    none = (0.0,) * len(data)
    return Transform(
        data=(*((*row, 0) for row in data), *((0, *row) for row in data)),
        weight=(*((0, b, 0, a) for a, b in weight), *((b, 0, a, 0) for a, b in weight)),
        output=tuple(own for row in output for own in ((*row, *none), (*none, *row))),
        stride=2,
        is_transposed=True,
    )


F2_TRANSPOSED = _of_both_phases(
    data=((1, -1, 0), (0, 1, 0), (0, -1, 1)),
    weight=((1, 0), (1, 1), (0, 1)),
    output=((1, 1, 0), (0, 1, 1)),
)
F4_TRANSPOSED = _of_both_phases(
    data=F3.data,
    weight=((1 / 2, 0), (-1 / 2, -1 / 2), (-1 / 6, 1 / 6), (1 / 6, 1 / 3), (0, 1)),
    output=((1, 1, 1, 1, 0), (0, 1, -1, 2, 0), (0, 1, 1, 4, 0), (0, 1, -1, 8, 1)),
)
TRANSFORMS: Mapping[int, Transform] = MappingProxyType({f.tile: f for f in (F2, F3, F4)})


def filtered(
    data: Any,
    weight: Any,
    transform: Transform,
    before: Sequence[int],
    outputs: Sequence[int],
    groups: int = 1,
) -> Any:
    """The convolution, tile by tile, with the transform's stride; channels last.

    Args:
        data: TE tensor `[n, h, w, c]`.
        weight: transformed, `[s, s, c / groups, f]`.
        transform: of which size.
        before: zeros at the top and the left of the data.
        outputs: rows and columns. Where they are no whole number of tiles, the last ones reach
            beyond them, into zeros.
        groups: each of so many parts of the filters sees its own part of the channels.

    Returns:
        `[n, rows, m, columns, m, f]`.
    """
    spectrum = _spectrum(data, transform, before, outputs)
    return _inverse(_product(spectrum, weight, groups), transform)


def _spectrum(
    data: Any, transform: Transform, before: Sequence[int], outputs: Sequence[int]
) -> Any:
    """Data to `[s, s, n, rows, columns, c]`, one side of a tile after the other."""
    batch, *sides, channels = (int(size) for size in data.shape)
    size, inputs, step = transform.size, transform.inputs, transform.step
    rows, columns = tiles = [-(-count // transform.tile) for count in outputs]
    ends = [(count - 1) * step + inputs for count in tiles]
    after = [max(0, e - side - b) for e, side, b in zip(ends, sides, before, strict=True)]
    padded = topi.nn.pad(data, [0, *before, 0], [0, *after, 0], name="pad")
    table = _table(transform.data, "into", str(data.dtype))
    i, j = te.reduce_axis((0, inputs), "i"), te.reduce_axis((0, inputs), "j")
    tall = te.compute(
        (size, inputs, batch, rows, columns, channels),
        lambda a, b, n, y, x, c: te.sum(
            table[a, i] * padded[n, y * step + i, x * step + b, c], axis=i
        ),
        name="tall",
    )
    return te.compute(
        (size, size, batch, rows, columns, channels),
        lambda a, b, n, y, x, c: te.sum(table[b, j] * tall[a, j, n, y, x, c], axis=j),
        name="spectrum",
    )


def _product(spectrum: Any, weight: Any, groups: int) -> Any:
    """A product of matrices for each point of a tile, and group."""
    channels, filters = (int(size) for size in weight.shape[2:])
    k, each = te.reduce_axis((0, channels), "k"), filters // groups

    def point(a: Any, b: Any, n: Any, y: Any, x: Any, f: Any) -> Any:
        c = k if groups == 1 else f // each * channels + k
        return te.sum(spectrum[a, b, n, y, x, c] * weight[a, b, k, f], axis=k)

    return te.compute((*spectrum.shape[:-1], filters), point, name="product")


def _inverse(product: Any, transform: Transform) -> Any:
    """`[s, s, n, rows, columns, f]` to `[n, rows, m, columns, m, f]`."""
    batch, rows, columns, filters = (int(size) for size in product.shape[2:])
    tile, size = transform.tile, transform.size
    table = _table(transform.output, "back", str(product.dtype))
    p, q = te.reduce_axis((0, size), "p"), te.reduce_axis((0, size), "q")
    short = te.compute(
        (tile, size, batch, rows, columns, filters),
        lambda u, b, n, y, x, f: te.sum(table[u, p] * product[p, b, n, y, x, f], axis=p),
        name="short",
    )
    return te.compute(
        (batch, rows, tile, columns, tile, filters),
        lambda n, y, u, x, v, f: te.sum(table[v, q] * short[u, q, n, y, x, f], axis=q),
        name="tiles",
    )


def joined(tiles: Any, height: int, width: int, name: str) -> Any:
    """`[n, rows, m, columns, m, f]` to `[n, height, width, f]`."""
    batch, _, tile, _, _, filters = (int(size) for size in tiles.shape)
    return te.compute(
        (batch, height, width, filters),
        lambda n, h, w, f: tiles[n, h // tile, h % tile, w // tile, w % tile, f],
        name=name,
    )


def transform_weight(weight: Array, transform: Transform) -> Array:
    """`[r, r, c, f]` to `[s, s, c, f]`, in float64 inside."""
    matrix = np.asarray(transform.weight)
    exact = np.einsum("ai,ijcf->ajcf", matrix, weight.astype(np.float64))
    out: Array = np.einsum("bj,ajcf->abcf", matrix, exact).astype(weight.dtype)
    return out


def transformed(weight: Any, transform: Transform) -> Any:
    """The same as stages: TE tensor `[r, r, c, f]` to `[s, s, c, f]`, one side after the other."""
    size, taps = transform.size, transform.taps
    inner = tuple(int(extent) for extent in weight.shape[2:])
    table = _table(transform.weight, "taps", str(weight.dtype))
    i, j = te.reduce_axis((0, taps), "i"), te.reduce_axis((0, taps), "j")
    long = te.compute(
        (size, taps, *inner),
        lambda a, b, c, f: te.sum(table[a, i] * weight[i, b, c, f], axis=i),
        name="long",
    )
    return te.compute(
        (size, size, *inner),
        lambda a, b, c, f: te.sum(table[b, j] * long[a, j, c, f], axis=j),
        name="kernels",
    )


def is_nearly_whole(sizes: Sequence[int], transform: Transform) -> bool:
    """Whether few points are computed beyond an output of such sizes."""
    whole = math.prod(-(-size // transform.tile) * transform.tile for size in sizes)
    return whole <= math.prod(sizes) * (1 + _MOST_WASTE)


def _table(values: Matrix, name: str, dtype: str) -> Any:
    """A small matrix as a stage that holds nothing but constants."""
    shape = (len(values), len(values[0]))

    def entry(row: Any, column: Any) -> Any:
        zero = tirx.const(0.0, dtype)
        found = zero
        for r, line in enumerate(values):
            inner = zero
            for c, value in enumerate(line):
                if value:
                    inner = tirx.Select(column == c, tirx.const(float(value), dtype), inner)
            found = tirx.Select(row == r, inner, found)
        return found

    return te.compute(shape, entry, name=name)
