"""Winograd's minimal filtering F(m×m, r×r) as stages: separable transforms around products.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016), section 4. Of
volumes rows and columns are filtered; along the depth, taps are summed up with the channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tirx, topi

from ansor.workloads.minimal_filtering.transformed_weights import (
    channel_of_phases,
    constant_matrix_stage,
)
from ansor.workloads.minimal_filtering.transforms import Transform


@dataclass(frozen=True)
class DepthForm:
    """The depth of a convolution of volumes.

    Attributes:
        outputs: along it.
        stride: along it.
        dilation: of the taps.
        before: zeros before the data.
    """

    outputs: int
    stride: int
    dilation: int
    before: int


@dataclass(frozen=True)
class Form:
    """The parameters of a convolution beside its operands and its transform.

    Attributes:
        before: zeros at the top and the left of the data.
        outputs: rows and columns. Where they are no whole number of tiles, the last ones reach
            beyond them, into zeros.
        groups: number of groups; the filters of a group see the channels of the group. One group
            where the transform has phases.
        dilation: rows, and columns, from one tap to the next; more than one only where the
            transform has a stride of one. Outputs at this distance make up a tile.
        depth: of volumes.
    """

    before: tuple[int, int]
    outputs: tuple[int, int]
    groups: int = 1
    dilation: int = 1
    depth: DepthForm | None = None


def filtered(data: Any, weight: Any, transform: Transform, form: Form) -> Any:
    """The convolution, tile by tile, with the transform's stride; channels last.

    Args:
        data: TE tensor `[n, h, w, c]`, of volumes `[n, d, h, w, c]`.
        weight: transformed, `[s, s, c / groups, f]`, with phases `[s, s, phases² c, f]`; of volumes
            `[s, s, taps, c, f]`, with those along the depth.
        transform: of which size.
        form: of the convolution.

    Returns:
        `[n, rows, m, columns, m, f]`, of volumes `[n, d, rows, m, columns, m, f]`.
    """
    spectrum = _spectrum(data, transform, form, int(weight.shape[2]))
    return _inverse(_product(spectrum, weight, form), transform)


def _spectrum(data: Any, transform: Transform, form: Form, taps: int) -> Any:
    """Data to `[s, s, n, rows, columns, phases² c]`, one side of a tile after the other; of volumes
    with their padded depth before the rows."""
    size, inputs, step, phases = transform.size, transform.inputs, transform.step, transform.phases
    apart = form.dilation
    counts = [apart * -(-count // (transform.tile * apart)) for count in form.outputs]
    ends = [phases * apart * ((count // apart - 1) * step + inputs) for count in counts]
    padded = _padded(data, form, ends, taps)
    if phases > 1:
        padded = _apart(padded, phases, ends)
    *outer, _, _, channels = (int(extent) for extent in padded.shape)
    sides = (*outer, *counts, channels)
    into = constant_matrix_stage(transform.data, "into", str(data.dtype))
    i, j = te.reduce_axis((0, inputs), "i"), te.reduce_axis((0, inputs), "j")

    def tall(a: Any, b: Any, *point: Any) -> Any:
        *n, y, x, c = point
        row, column = (_first(tile, step, apart) for tile in (y, x))
        return te.sum(into[a, i] * padded(*n, row + i * apart, column + b * apart, c), axis=i)

    names = [*_outer(data), "y", "x", "c"]
    high = te.compute((size, inputs, *sides), tall, name="tall", varargs_names=names)

    def wide(a: Any, b: Any, *point: Any) -> Any:
        return te.sum(into[b, j] * high(a, j, *point), axis=j)

    return te.compute((size, size, *sides), wide, name="spectrum", varargs_names=names)


def _outer(data: Any) -> list[str]:
    """Names of the dimensions before the rows."""
    return ["n", "z"] if len(data.shape) == 5 else ["n"]


def _padded(data: Any, form: Form, ends: Sequence[int], taps: int) -> Any:
    """Data with zeros around, up to where the last tiles end."""
    _, *sides, _ = (int(extent) for extent in data.shape)
    before, ends = list(form.before), list(ends)
    if form.depth is not None:
        along = form.depth
        before.insert(0, along.before)
        ends.insert(0, (along.outputs - 1) * along.stride + (taps - 1) * along.dilation + 1)
    after = [max(0, e - side - b) for e, side, b in zip(ends, sides, before, strict=True)]
    return topi.nn.pad(data, [0, *before, 0], [0, *after, 0], name="pad")


def _first(tile: Any, step: int, apart: int) -> Any:
    """The first input of a tile: of each `apart` tiles, each begins one further on."""
    if apart == 1:
        return tile * step
    return tirx.floordiv(tile, apart) * (step * apart) + tirx.floormod(tile, apart)


def _apart(padded: Any, phases: int, ends: Sequence[int]) -> Any:
    """The phases of an image as channels of one, `[n, h / phases, w / phases, phases² c]`."""
    *outer, _, _, channels = (int(extent) for extent in padded.shape)
    sides = [end // phases for end in ends]

    def point(*at: Any) -> Any:
        *n, y, x, k = at
        row, column, c = channel_of_phases(k, phases, channels)
        return padded(*n, y * phases + row, x * phases + column, c)

    shape, names = (*outer, *sides, phases**2 * channels), [*_outer(padded), "y", "x", "k"]
    return te.compute(shape, point, name="phases", varargs_names=names)


def _product(spectrum: Any, weight: Any, form: Form) -> Any:
    """A product of matrices for each point of a tile, and group; of volumes also over taps."""
    *taps, channels, filters = (int(extent) for extent in weight.shape[2:])
    k, each = te.reduce_axis((0, channels), "k"), filters // form.groups
    along = [te.reduce_axis((0, count), "t") for count in taps]

    def point(a: Any, b: Any, n: Any, *rest: Any) -> Any:
        *z, y, x, f = rest
        if form.depth is not None:
            z = [z[0] * form.depth.stride + along[0] * form.depth.dilation]
        c = k if form.groups == 1 else f // each * channels + k
        value = spectrum(a, b, n, *z, y, x, c) * weight(a, b, *along, k, f)
        return te.sum(value, axis=[*along, k])

    size, _, batch, *_, rows, columns, _ = spectrum.shape
    outer = (batch,) if form.depth is None else (batch, form.depth.outputs)
    shape = (size, size, *outer, rows, columns, filters)
    names = ["z", "y", "x", "f"][-len(outer) - 2 :]
    return te.compute(shape, point, name="product", varargs_names=names)


def _inverse(product: Any, transform: Transform) -> Any:
    """`[s, s, n, rows, columns, f]` to `[n, rows, m, columns, m, f]`."""
    *outer, rows, columns, filters = (int(extent) for extent in product.shape[2:])
    tile, size = transform.tile, transform.size
    back = constant_matrix_stage(transform.output, "back", str(product.dtype))
    p, q = te.reduce_axis((0, size), "p"), te.reduce_axis((0, size), "q")
    names = ["n", "z"][: len(outer)]

    def short(u: Any, b: Any, *point: Any) -> Any:
        return te.sum(back[u, p] * product(p, b, *point), axis=p)

    shape = (tile, size, *outer, rows, columns, filters)
    low = te.compute(shape, short, name="short", varargs_names=[*names, "y", "x", "f"])

    def tiles(*point: Any) -> Any:
        *n, y, u, x, v, f = point
        return te.sum(back[v, q] * low(u, q, *n, y, x, f), axis=q)

    shape, names = (*outer, rows, tile, columns, tile, filters), [*names, "y", "u", "x", "v", "f"]
    return te.compute(shape, tiles, name="tiles", varargs_names=names)


def joined(tiles: Any, form: Form, name: str) -> Any:
    """`[n, rows, m, columns, m, f]` to `[n, height, width, f]`, of volumes with their depth."""
    *outer, _, tile, _, _, filters = (int(extent) for extent in tiles.shape)
    place = _place_in(tile, form.dilation)

    def point(*at: Any) -> Any:
        *n, h, w, f = at
        return tiles(*n, *place(h), *place(w), f)

    names = [*["n", "d"][: len(outer)], "h", "w", "f"]
    return te.compute((*outer, *form.outputs, filters), point, name=name, varargs_names=names)


def _place_in(tile: int, apart: int) -> Callable[[Any], tuple[Any, Any]]:
    """The tile of an output, and its place in the tile."""

    def place(at: Any) -> tuple[Any, Any]:
        if apart == 1:
            return at // tile, at % tile
        number = at // (apart * tile) * apart + at % apart
        return number, at // apart % tile

    return place
