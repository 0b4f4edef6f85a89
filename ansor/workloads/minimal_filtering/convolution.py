"""Recognises convolutions of images and volumes by the reads of a stage, in any layout."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

from ansor.dag.contraction import product_dtypes
from ansor.dag.graph import ComputeDAG
from ansor.dag.padding import PaddedSource, source_of
from ansor.dag.stage import Access, Stage
from ansor.workloads.minimal_filtering.convolution_roles import (
    ConvolutionRoles,
    Layout,
    plain_axes,
    roles_of,
)


@dataclass(frozen=True)
class Depth:
    """The first side of volumes.

    Attributes:
        taps: of a kernel along it.
        stride: along it.
        dilation: of the taps.
        padding: zeros before and behind the data.
    """

    taps: int
    stride: int
    dilation: int
    padding: tuple[int, int]


@dataclass(frozen=True)
class Convolution:
    """A stage that convolves images or volumes, or does the transpose of it with a stride of two
    and without multiplying by zeros.

    Attributes:
        stage: its name.
        padded_by: name of the stage that puts zeros around the data for it, if one does.
        data: buffer of the images, without these zeros.
        weight: buffer of the kernels.
        data_layout: dimensions of `data` that are image, depth (of volumes), row, column, channel.
        weight_layout: dimensions of `weight` that are depth, row, column, channel, filter.
        out_layout: dimensions of the result that are image, depth, row, column, filter.
        kernel: rows and columns of a kernel.
        stride: along both.
        dilation: rows, and columns, from one tap to the next.
        padding: zeros at the top, left, bottom and right of the data.
        groups: number of groups; the filters of a group see the channels of the group.
        depth: of volumes.
        is_transposed: whether outputs ``2 i - 1`` and ``2 i`` begin at input ``i``, and each meets
            every other tap.
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
    dilation: int
    padding: tuple[int, int, int, int]
    groups: int
    depth: Depth | None = None
    is_transposed: bool = False


def convolution_of(dag: ComputeDAG, name: str) -> Convolution | None:
    """The stage as a convolution; None if it is none."""
    stage = dag.stages[name]
    if product_dtypes(dag, name) is None or stage.derived or stage.folded:
        return None
    for data, weight in permutations(stage.reads):
        roles = roles_of(stage, data, weight)
        if roles is not None:
            return _found(dag, stage, data, weight, roles)
    return None


def _found(
    dag: ComputeDAG, stage: Stage, data: Access, weight: Access, roles: ConvolutionRoles
) -> Convolution:
    sides, (_, *around, _) = [stage.axes[axis].size for axis in roles.taps], roles.data_layout
    source = _around_images(dag, data.buffer, roles.data_layout)
    padding = [(source.before[d], source.after[d]) if source else (0, 0) for d in around]
    (top, bottom), (left, right) = padding[-2:]
    depth = None
    if len(sides) == 3:
        depth = Depth(sides[0], roles.strides[0], roles.dilations[0], padding[0])
    out = plain_axes(stage.writes[0])
    met = roles.strides[-1] if roles.is_transposed else 1  # one of so many taps, by each output
    return Convolution(
        stage=stage.name,
        padded_by=None if source is None else source.stage,
        data=data.buffer if source is None else source.buffer,
        weight=weight.buffer,
        data_layout=roles.data_layout,
        weight_layout=roles.weight_layout,
        out_layout=tuple(out.index(a) for a in (roles.image, *roles.places, roles.filter)),
        kernel=(met * sides[-2], met * sides[-1]),
        stride=roles.strides[-1],
        dilation=roles.dilations[-1],
        padding=(top, left, bottom, right),
        groups=roles.groups,
        depth=depth,
        is_transposed=roles.is_transposed,
    )


def _around_images(dag: ComputeDAG, buffer: str, layout: Layout) -> PaddedSource | None:
    """The source of a buffer that is a copy with zeros at its sides."""
    source = source_of(dag, buffer)
    if source is None or any(source.before[d] or source.after[d] for d in (layout[0], layout[-1])):
        return None
    return source
