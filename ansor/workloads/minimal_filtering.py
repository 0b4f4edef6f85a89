"""Winograd's minimal filtering F(m×m, r×r) as stages: separable transforms around products.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016), section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import te, tirx, topi

from ansor.workloads.transforms import Matrix, Transform
from ansor.workloads.workload import Array


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
        weight: transformed, `[s, s, c / groups, f]`, with phases `[s, s, phases² c, f]`.
        transform: of which size.
        before: zeros at the top and the left of the data.
        outputs: rows and columns. Where they are no whole number of tiles, the last ones reach
            beyond them, into zeros.
        groups: each of so many parts of the filters sees its own part of the channels; one where
            the transform has phases.

    Returns:
        `[n, rows, m, columns, m, f]`.
    """
    spectrum = _spectrum(data, transform, before, outputs)
    return _inverse(_product(spectrum, weight, groups), transform)


def _spectrum(
    data: Any, transform: Transform, before: Sequence[int], outputs: Sequence[int]
) -> Any:
    """Data to `[s, s, n, rows, columns, phases² c]`, one side of a tile after the other."""
    batch, *sides, channels = (int(size) for size in data.shape)
    size, inputs, step, phases = transform.size, transform.inputs, transform.step, transform.phases
    rows, columns = tiles = [-(-count // transform.tile) for count in outputs]
    ends = [phases * ((count - 1) * step + inputs) for count in tiles]
    after = [max(0, e - side - b) for e, side, b in zip(ends, sides, before, strict=True)]
    padded = topi.nn.pad(data, [0, *before, 0], [0, *after, 0], name="pad")
    if phases > 1:
        padded, channels = _apart(padded, phases, ends), phases**2 * channels
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


def _apart(padded: Any, phases: int, ends: Sequence[int]) -> Any:
    """The phases of an image as channels of one, `[n, h / phases, w / phases, phases² c]`."""
    batch, *_, channels = (int(size) for size in padded.shape)
    sides = [end // phases for end in ends]

    def point(n: Any, y: Any, x: Any, k: Any) -> Any:
        row, column, c = _phase(k, phases, channels)
        return padded[n, y * phases + row, x * phases + column, c]

    return te.compute((batch, *sides, phases**2 * channels), point, name="phases")


def _phase(k: Any, phases: int, channels: int) -> tuple[Any, Any, Any]:
    """Row, column and channel of a channel of phases."""
    floordiv, floormod = tirx.floordiv, tirx.floormod
    row, rest = floordiv(k, phases * channels), floormod(k, phases * channels)
    return row, floordiv(rest, channels), floormod(rest, channels)


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
    """`[r, r, c, f]` to `[s, s, phases² c, f]`, in float64 inside."""
    matrix, phases = np.asarray(transform.weight), transform.phases
    rows, columns, channels, filters = weight.shape
    missing = [(0, phases * transform.taps - size) for size in (rows, columns)]
    whole = np.pad(weight, [*missing, (0, 0), (0, 0)]).astype(np.float64)
    apart = whole.reshape(transform.taps, phases, transform.taps, phases, channels, filters)
    exact = np.einsum("ai,bj,ipjqcf->abpqcf", matrix, matrix, apart, optimize=True)
    out: Array = exact.reshape(transform.shape_of(weight.shape)).astype(weight.dtype)
    return out


def transformed(weight: Any, transform: Transform) -> Any:
    """The same as stages, of a TE tensor, one side after the other."""
    size, taps = transform.size, transform.taps
    weight = _kernels_apart(weight, transform) if transform.phases > 1 else weight
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


def _kernels_apart(weight: Any, transform: Transform) -> Any:
    """The taps of each phase, as `_apart` orders what they meet; zero where it has fewer."""
    rows, columns, channels, filters = (int(size) for size in weight.shape)
    taps, phases = transform.taps, transform.phases
    zero = tirx.const(0, str(weight.dtype))

    def tap(i: Any, j: Any, k: Any, f: Any) -> Any:
        row, column, c = _phase(k, phases, channels)
        row, column = i * phases + row, j * phases + column
        inside = tirx.all(row < rows, column < columns)
        return tirx.if_then_else(inside, weight[row, column, c, f], zero)

    return te.compute((taps, taps, phases**2 * channels, filters), tap, name="taps_apart")


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
