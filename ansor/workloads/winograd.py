"""A 3×3 convolution by Winograd's minimal filtering, F(4×4, 3×3), in separable transforms.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import te, tirx, topi

from ansor.workloads.windows import windows
from ansor.workloads.workload import Array, Workload

TILE = 4  # outputs of one transform along each side
SIZE = TILE + 2  # inputs
_DATA: Sequence[Sequence[float]] = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)
_OUTPUT: Sequence[Sequence[float]] = (
    (1, 1, 1, 1, 1, 0),
    (0, 1, -1, 2, -2, 0),
    (0, 1, 1, 4, 4, 0),
    (0, 1, -1, 8, -8, 1),
)
_WEIGHT = np.array(
    [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ]
)


def winograd_conv2d(
    height: int = 56, width: int = 56, channels: int = 64, filters: int = 64, relu: int = 1
) -> Workload:
    """Stride 1, padding 1, data NHWC, batch 1, bias; height and width are multiples of 4.

    Inputs: data `[1, height, width, channels]`, transformed weights `[6, 6, channels, filters]`
    (see `transform_weight`), bias `[filters]`. Output `[1, height / 4, 4, width / 4, 4, filters]`,
    which lies in memory as NHWC does.
    """
    data = te.placeholder((1, height, width, channels), name="data")
    weight = te.placeholder((SIZE, SIZE, channels, filters), name="weight")
    bias = te.placeholder((filters,), name="bias")
    tiles = _inverse(_product(_spectrum(data), weight))

    def finished(n: Any, y: Any, u: Any, x: Any, v: Any, f: Any) -> Any:
        value = tiles[n, y, u, x, v, f] + bias[f]
        return te.max(value, 0) if relu else value

    out = te.compute(tiles.shape, finished, name="out")

    def reference(data: Array, weight: Array, bias: Array) -> Array:
        seen = windows(data, SIZE, TILE, 1)
        into, back = np.asarray(_DATA, float), np.asarray(_OUTPUT, float)
        product = np.einsum("ai,bj,nyxcij,abcf->abnyxf", into, into, seen, weight, optimize=True)
        tiles = np.einsum("ua,vb,abnyxf->nyuxvf", back, back, product, optimize=True) + bias
        out: Array = (np.maximum(tiles, 0) if relu else tiles).astype(np.float32)
        return out

    return Workload("winograd_conv2d", (data, weight, bias, out), reference)


def _spectrum(data: Any) -> Any:
    """Data `[1, height, width, channels]` to `[6, 6, 1, rows, columns, channels]`, one side of a
    tile after the other."""
    _, height, width, channels = (int(size) for size in data.shape)
    padded = topi.nn.pad(data, [0, 1, 1, 0], [0, 1, 1, 0], name="pad")
    table = _table(_DATA, "into")
    i, j = te.reduce_axis((0, SIZE), "i"), te.reduce_axis((0, SIZE), "j")
    shape = (SIZE, SIZE, 1, height // TILE, width // TILE, channels)
    tall = te.compute(
        shape,
        lambda a, b, n, y, x, c: te.sum(
            table[a, i] * padded[n, y * TILE + i, x * TILE + b, c], axis=i
        ),
        name="tall",
    )
    return te.compute(
        shape,
        lambda a, b, n, y, x, c: te.sum(table[b, j] * tall[a, j, n, y, x, c], axis=j),
        name="spectrum",
    )


def _product(spectrum: Any, weight: Any) -> Any:
    """A product of matrices for each of the 6 x 6 points of a tile."""
    channels, filters = (int(size) for size in weight.shape[2:])
    k = te.reduce_axis((0, channels), "k")
    return te.compute(
        (*spectrum.shape[:-1], filters),
        lambda a, b, n, y, x, f: te.sum(spectrum[a, b, n, y, x, k] * weight[a, b, k, f], axis=k),
        name="product",
    )


def _inverse(product: Any) -> Any:
    """`[6, 6, 1, rows, columns, filters]` to `[1, rows, 4, columns, 4, filters]`."""
    rows, columns, filters = (int(size) for size in product.shape[3:])
    table = _table(_OUTPUT, "back")
    p, q = te.reduce_axis((0, SIZE), "p"), te.reduce_axis((0, SIZE), "q")
    short = te.compute(
        (TILE, SIZE, 1, rows, columns, filters),
        lambda u, b, n, y, x, f: te.sum(table[u, p] * product[p, b, n, y, x, f], axis=p),
        name="short",
    )
    return te.compute(
        (1, rows, TILE, columns, TILE, filters),
        lambda n, y, u, x, v, f: te.sum(table[v, q] * short[u, q, n, y, x, f], axis=q),
        name="tiles",
    )


def transform_weight(weight: Array) -> Array:
    """`[3, 3, channels, filters]` to `[6, 6, channels, filters]`, in float64 inside."""
    exact = np.einsum("ai,bj,ijcf->abcf", _WEIGHT, _WEIGHT, weight.astype(np.float64))
    out: Array = exact.astype(np.float32)
    return out


def _table(values: Sequence[Sequence[float]], name: str) -> Any:
    """A small matrix as a stage that holds nothing but constants."""
    shape = (len(values), len(values[0]))

    def entry(row: Any, column: Any) -> Any:
        found = tirx.const(0.0, "float32")
        for r, line in enumerate(values):
            for c, value in enumerate(line):
                if value:
                    here = tirx.all(row == r, column == c)
                    found = tirx.Select(here, tirx.const(float(value), "float32"), found)
        return found

    return te.compute(shape, entry, name=name)
