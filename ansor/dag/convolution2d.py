"""Recognises convolutions of images by what a stage reads, in any layout."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

from ansor.dag.contraction import product_dtypes
from ansor.dag.graph import ComputeDAG
from ansor.dag.index import Index, Quotient, add, axis_index
from ansor.dag.padding import Source, source_of
from ansor.dag.stage import Access, Stage

Layout = tuple[int, int, int, int]  # where each dimension of the canonical order stands


@dataclass(frozen=True)
class Convolution2d:
    """A stage that convolves images, without dilation.

    Attributes:
        stage: its name.
        padded_by: name of the stage that puts zeros around the data for it, if one does.
        data: buffer of the images, without these zeros.
        weight: buffer of the kernels.
        data_layout: dimensions of `data` that are image, row, column, channel.
        weight_layout: dimensions of `weight` that are row, column, channel, filter.
        out_layout: dimensions of the result that are image, row, column, filter.
        kernel: rows and columns of a kernel.
        stride: along both.
        padding: zeros at the top, left, bottom and right.
        groups: each of so many parts of the filters sees its own part of the channels.
    """

    stage: str
    padded_by: str | None
    data: str
    weight: str
    data_layout: Layout
    weight_layout: Layout
    out_layout: Layout
    kernel: tuple[int, int]
    stride: int
    padding: tuple[int, int, int, int]
    groups: int


def convolution2d(dag: ComputeDAG, name: str) -> Convolution2d | None:
    """The stage as a convolution of images; None if it is none."""
    stage = dag.stages[name]
    if product_dtypes(dag, name) is None or stage.derived or stage.folded:
        return None
    for data, weight in permutations(stage.reads):
        roles = _roles(stage, data, weight)
        if roles is not None:
            return _found(dag, stage, data, weight, roles)
    return None


class _Roles(NamedTuple):
    """Axes of a convolution's stage, and dimensions of its data, by what they are."""

    image: int
    places: tuple[int, int]
    taps: tuple[int, int]
    channel: int
    filter: int
    stride: int
    groups: int
    data_layout: Layout


def _roles(stage: Stage, data: Access, weight: Access) -> _Roles | None:
    """What the axes are if these are the data and the kernels."""
    kernel, out = _plain_axes(weight), _plain_axes(stage.writes[0])
    if len(kernel) != 4 or len(out) != 4 or len(data.indices) != 4:
        return None
    filters = [axis for axis in kernel if axis in stage.spatial]
    images = {i: axis for i, axis in enumerate(_plain(data)) if axis in set(out) - set(kernel)}
    found = {i: _window(stage, index) for i, index in enumerate(data.indices)}
    windows = {i: window for i, window in found.items() if window is not None}
    if len(filters) != 1 or len(images) != 1 or len(windows) != 2:
        return None
    (image_dim, image), (row_dim, column_dim) = *images.items(), windows
    (channel_dim,) = set(range(4)) - {image_dim, row_dim, column_dim}
    places, taps, strides = zip(*windows.values(), strict=True)
    channels = set(kernel) - {*filters, *taps}
    if len(channels) != 1 or len(set(strides)) != 1:
        return None
    (channel,) = channels
    groups = _groups(stage, data.indices[channel_dim], channel, filters[0])
    named = {image, *places, filters[0]} == set(out) and {channel, *taps} == set(stage.reduce)
    if groups is None or not named:
        return None
    layout = (image_dim, row_dim, column_dim, channel_dim)
    return _Roles(image, places, taps, channel, filters[0], strides[0], groups, layout)


def _plain(access: Access) -> list[int | None]:
    """For each dimension the axis that it is, from zero on."""
    return [None if index is None or index.const else index.single_axis for index in access.indices]


def _plain_axes(access: Access) -> list[int]:
    """The same, where every dimension is another axis; else none."""
    axes = [axis for axis in _plain(access) if axis is not None]
    return axes if len(set(axes)) == len(access.indices) else []


def _window(stage: Stage, index: Index | None) -> tuple[int, int, int] | None:
    """Axis of the place, of the tap, and the stride, of ``place * stride + tap``."""
    if index is None or index.const or len(index.terms) != 2:
        return None
    factors = {axis: factor for axis, factor in index.terms if isinstance(axis, int)}
    places, taps = ([a for a in own if a in factors] for own in (stage.spatial, stage.reduce))
    if len(places) != 1 or len(taps) != 1 or factors[taps[0]] != 1:
        return None
    return places[0], taps[0], factors[places[0]]


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


def _found(
    dag: ComputeDAG, stage: Stage, data: Access, weight: Access, roles: _Roles
) -> Convolution2d:
    (rows, columns), (_, y, x, _) = roles.taps, roles.data_layout
    source = _around_images(dag, data.buffer, roles.data_layout)
    padding = (0, 0, 0, 0)
    if source is not None:
        padding = (source.before[y], source.before[x], source.after[y], source.after[x])
    kernel, out = _plain_axes(weight), _plain_axes(stage.writes[0])
    w, h, c, f = (kernel.index(a) for a in (columns, rows, roles.channel, roles.filter))
    n, p, q, g = (out.index(a) for a in (roles.image, *roles.places, roles.filter))
    return Convolution2d(
        stage=stage.name,
        padded_by=None if source is None else source.stage,
        data=data.buffer if source is None else source.buffer,
        weight=weight.buffer,
        data_layout=roles.data_layout,
        weight_layout=(h, w, c, f),
        out_layout=(n, p, q, g),
        kernel=(stage.axes[rows].size, stage.axes[columns].size),
        stride=roles.stride,
        padding=padding,
        groups=roles.groups,
    )


def _around_images(dag: ComputeDAG, buffer: str, layout: Layout) -> Source | None:
    """What a buffer holds with zeros around its rows and columns, and nothing else."""
    source = source_of(dag, buffer)
    if source is None or any(source.before[d] or source.after[d] for d in (layout[0], layout[3])):
        return None
    return source
