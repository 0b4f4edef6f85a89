"""The roles of the axes of a convolution's stage, derived from its reads."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from ansor.dag.index import Index, Quotient, add, axis_index, quotient, remainder
from ansor.dag.stage import Access, Stage

Layout = tuple[int, ...]  # where each dimension of the canonical order stands


class ConvolutionRoles(NamedTuple):
    """Axes of a convolution's stage, and dimensions of its operands, by their roles.

    Attributes:
        places: rows and columns of the result, of volumes after their depth.
        taps: those of a kernel, in the same order.
        strides: along each side.
        dilations: of the taps along each.
        data_layout: dimensions of the data: image, depth (of volumes), row, column, channel.
        weight_layout: dimensions of the kernels: depth, row, column, channel, filter.
    """

    image: int
    places: tuple[int, ...]
    taps: tuple[int, ...]
    channel: int
    filter: int
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int
    data_layout: Layout
    weight_layout: Layout
    is_transposed: bool = False


def roles_of(stage: Stage, data: Access, weight: Access) -> ConvolutionRoles | None:
    """The roles of the axes for these data and kernels; None if it is no convolution."""
    return _convolved(stage, data, weight) or _transposed(stage, data, weight)


def _convolved(stage: Stage, data: Access, weight: Access) -> ConvolutionRoles | None:
    kernel, out, rank = plain_axes(weight), plain_axes(stage.writes[0]), len(data.indices)
    image_rank, volume_rank = 4, 5
    if rank not in (image_rank, volume_rank) or len(kernel) != rank or len(out) != rank:
        return None
    filters = [axis for axis in kernel if axis in stage.spatial]
    images = {i: axis for i, axis in enumerate(_plain(data)) if axis in set(out) - set(kernel)}
    found = {i: _window(stage, index) for i, index in enumerate(data.indices)}
    windows = {i: window for i, window in found.items() if window is not None}
    if len(filters) != 1 or len(images) != 1 or len(windows) != rank - 2:
        return None
    ((image_dim, image),) = images.items()
    (channel_dim,) = set(range(rank)) - {image_dim, *windows}
    places, taps, strides, dilations = zip(*windows.values(), strict=True)
    channels = set(kernel) - {*filters, *taps}
    if len(channels) != 1 or any(len(set(steps[-2:])) != 1 for steps in (strides, dilations)):
        return None
    (channel,) = channels
    groups = _groups(stage, data.indices[channel_dim], channel, filters[0])
    named = {image, *places, filters[0]} == set(out) and {channel, *taps} == set(stage.reduce)
    if groups is None or not named:
        return None
    return ConvolutionRoles(
        image,
        places,
        taps,
        channel,
        filters[0],
        strides,
        dilations,
        groups,
        data_layout=(image_dim, *windows, channel_dim),
        weight_layout=tuple(kernel.index(axis) for axis in (*taps, channel, filters[0])),
    )


def _transposed(stage: Stage, data: Access, weight: Access) -> ConvolutionRoles | None:
    """The roles in the transpose of a convolution with a stride of two, in one group."""
    out = plain_axes(stage.writes[0])
    if not len(out) == len(data.indices) == len(weight.indices) == 4:
        return None
    found = {i: _half_window(stage, index) for i, index in enumerate(data.indices)}
    windows = {i: window for i, window in found.items() if window is not None}
    images = {i: axis for i, axis in enumerate(_plain(data)) if axis in out}
    channels = {i: axis for i, axis in enumerate(_plain(data)) if axis in stage.reduce}
    if (len(windows), len(images), len(channels)) != (2, 1, 1):
        return None
    ((image_dim, image),), ((channel_dim, channel),) = images.items(), channels.items()
    places, taps = zip(*windows.values(), strict=True)
    rest = set(out) - {image, *places}
    if len(rest) != 1 or {channel, *taps} != set(stage.reduce):
        return None
    (filters,) = rest
    kernel = [_every_other(stage, *window) for window in windows.values()]
    kernel += [axis_index(channel), axis_index(filters)]
    if set(kernel) != set(weight.indices):
        return None
    h, w, c, f = (weight.indices.index(index) for index in kernel)
    row_dim, column_dim = windows
    return ConvolutionRoles(
        image,
        places,
        taps,
        channel,
        filters,
        strides=(2, 2),
        dilations=(1, 1),
        groups=1,
        data_layout=(image_dim, row_dim, column_dim, channel_dim),
        weight_layout=(h, w, c, f),
        is_transposed=True,
    )


def _half_window(stage: Stage, index: Index | None) -> tuple[int, int] | None:
    """Axis of the place, and of the tap, of ``(place + 1) // 2 + tap``."""
    pairs = product(stage.spatial, stage.reduce)
    return next(
        (p for p in pairs if index == add(quotient(_after(p[0]), 2), axis_index(p[1]))), None
    )


def _every_other(stage: Stage, place: int, tap: int) -> Index:
    """The taps that a place meets, the last of them first."""
    last = 2 * (stage.axes[tap].size - 1)
    return add(remainder(_after(place), 2), Index(((tap, -2),), last))


def _after(axis: int) -> Index:
    return add(axis_index(axis), Index((), 1))


def _plain(access: Access) -> list[int | None]:
    """For each dimension the axis that it is, from zero on."""
    return [None if index is None or index.const else index.single_axis for index in access.indices]


def plain_axes(access: Access) -> list[int]:
    """The axis of each dimension, if all axes are distinct; else none."""
    axes = [axis for axis in _plain(access) if axis is not None]
    return axes if len(set(axes)) == len(access.indices) else []


def _window(stage: Stage, index: Index | None) -> tuple[int, int, int, int] | None:
    """Axes and factors of the place and of the tap, of ``place * stride + tap * dilation``."""
    if index is None or index.const or len(index.terms) != 2:
        return None
    factors = {axis: factor for axis, factor in index.terms if isinstance(axis, int)}
    places, taps = ([a for a in own if a in factors] for own in (stage.spatial, stage.reduce))
    if len(places) != 1 or len(taps) != 1 or min(factors.values()) < 1:
        return None
    return places[0], taps[0], factors[places[0]], factors[taps[0]]


def _groups(stage: Stage, index: Index | None, channel: int, filters: int) -> int | None:
    """Groups of a convolution whose data has this index along its channels."""
    if index == axis_index(channel):
        return 1
    count, size = stage.axes[filters].size, stage.axes[channel].size
    for each in (n for n in range(1, count) if count % n == 0):
        group = Quotient(axis_index(filters), each)
        if index == add(axis_index(channel), Index(((group, size),))):
            return count // each
    return None
