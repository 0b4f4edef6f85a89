"""Winograd's minimal filtering F(m×m, 3×3) as stages: separable transforms around products.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016), section 4. With a
stride of 2, even and odd inputs are filtered apart, after Huang et al., "DWM: A Decomposable
Winograd Method for Convolution Acceleration" (AAAI 2020): by two taps and by one.
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
KERNEL = 3  # taps along each side
_MOST_WASTE = 0.35  # of the output's points computed in vain, where it is no whole number of tiles


@dataclass(frozen=True)
class Transform:
    """The matrices of F(m×m, 3×3), equation 8 of the paper; a tile takes s inputs a side, m + 2,
    or 2 m + 1 with a stride of 2.

    Attributes:
        data: `[s, s]`, B transposed.
        weight: `[s, 3]`, G.
        output: `[m, s]`, A transposed.
        stride: of the convolution.
    """

    data: Matrix
    weight: Matrix
    output: Matrix
    stride: int = 1

    @property
    def tile(self) -> int:
        """Outputs along each side (m)."""
        return len(self.output)

    @property
    def size(self) -> int:
        """Inputs along each side, and points at which is multiplied (s)."""
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
TRANSFORMS: Mapping[int, Transform] = MappingProxyType({f.tile: f for f in (F2, F3, F4)})


def filtered(
    data: Any, weight: Any, transform: Transform, padding: tuple[int, ...], groups: int = 1
) -> Any:
    """The convolution, tile by tile, with the transform's stride; channels last.

    Args:
        data: TE tensor `[n, h, w, c]`.
        weight: transformed, `[s, s, c / groups, f]`.
        transform: of which size.
        padding: top, left, bottom, right. Where the output is no whole number of tiles, the last
            ones reach beyond it, into zeros.
        groups: each of so many parts of the filters sees its own part of the channels.

    Returns:
        `[n, rows, m, columns, m, f]`.
    """
    spectrum = _spectrum(data, transform, padding)
    return _inverse(_product(spectrum, weight, groups), transform)


def _spectrum(data: Any, transform: Transform, padding: tuple[int, ...]) -> Any:
    """Data to `[s, s, n, rows, columns, c]`, one side of a tile after the other."""
    top, left, bottom, right = padding
    batch, height, width, channels = (int(size) for size in data.shape)
    size, step = transform.size, transform.tile * transform.stride
    rows, bottom = _tiles(height, top, bottom, transform)
    columns, right = _tiles(width, left, right, transform)
    padded = topi.nn.pad(data, [0, top, left, 0], [0, bottom, right, 0], name="pad")
    table = _table(transform.data, "into", str(data.dtype))
    i, j = te.reduce_axis((0, size), "i"), te.reduce_axis((0, size), "j")
    shape = (size, size, batch, rows, columns, channels)
    tall = te.compute(
        shape,
        lambda a, b, n, y, x, c: te.sum(
            table[a, i] * padded[n, y * step + i, x * step + b, c], axis=i
        ),
        name="tall",
    )
    return te.compute(
        shape,
        lambda a, b, n, y, x, c: te.sum(table[b, j] * tall[a, j, n, y, x, c], axis=j),
        name="spectrum",
    )


def _tiles(inputs: int, before: int, after: int, transform: Transform) -> tuple[int, int]:
    """How many there are along a side, and the padding after so many inputs that they need."""
    outputs = (inputs + before + after - KERNEL) // transform.stride + 1
    tiles = -(-outputs // transform.tile)
    last = (tiles * transform.tile - 1) * transform.stride + KERNEL
    return tiles, max(0, last - inputs - before)


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
    """`[3, 3, c, f]` to `[s, s, c, f]`, in float64 inside."""
    matrix = np.asarray(transform.weight)
    exact = np.einsum("ai,ijcf->ajcf", matrix, weight.astype(np.float64))
    out: Array = np.einsum("bj,ajcf->abcf", matrix, exact).astype(weight.dtype)
    return out


def transformed(weight: Any, transform: Transform) -> Any:
    """The same as stages: TE tensor `[3, 3, c, f]` to `[s, s, c, f]`, one side after the other."""
    size, inner = transform.size, tuple(int(size) for size in weight.shape[2:])
    table = _table(transform.weight, "taps", str(weight.dtype))
    i, j = te.reduce_axis((0, KERNEL), "i"), te.reduce_axis((0, KERNEL), "j")
    long = te.compute(
        (size, KERNEL, *inner),
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
