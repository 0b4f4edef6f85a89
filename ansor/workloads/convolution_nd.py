"""Convolutions over any number of spatial dimensions, channels last, dilated or in groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, topi

from ansor.workloads.precision import Precision, precision
from ansor.workloads.windows import output_size, sliding_windows
from ansor.workloads.workload import Array, Workload


@dataclass(frozen=True)
class ConvolutionSizes:
    """Sizes of a convolution, the same along every one of its spatial dimensions `space`.

    Data is `[batch, *space, channels]`, the weight `[kernel, ..., channels / groups, filters]`.
    The name `dtype` is that of a `Precision`.
    """

    batch: int
    space: tuple[int, ...]
    channels: int
    filters: int
    kernel: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1
    dtype: str = "float32"

    @property
    def reach(self) -> int:
        """Points from the first to the last that a window touches."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def out(self) -> tuple[int, ...]:
        """Spatial sizes of the result."""
        return tuple(output_size(n, self.reach, self.stride, self.padding) for n in self.space)

    @property
    def precision(self) -> Precision:
        """The dtypes of operands, sums and result."""
        return precision(self.dtype)

    @property
    def per_group(self) -> tuple[int, int]:
        """Channels and filters of one group."""
        return self.channels // self.groups, self.filters // self.groups


def convolution(name: str, sizes: ConvolutionSizes) -> Workload:
    """The convolution alone."""
    data, weight = placeholders(sizes)

    def reference(data: Array, weight: Array) -> Array:
        return convolved(sizes, data, weight)

    tensors = data, weight, convolve(sizes, data, weight)
    return sizes.precision.workload(name, tensors, reference)


def convolution_bn_relu(name: str, sizes: ConvolutionSizes) -> Workload:
    """``max((convolution + bias) * scale + offset, 0)``; the three vectors are `[filters]` in the
    dtype of the sums."""
    data, weight = placeholders(sizes)
    vectors, sums = ("bias", "scale", "offset"), sizes.precision.sums
    bias, scale, offset = (te.placeholder((sizes.filters,), sums, name=name) for name in vectors)
    conv = convolve(sizes, data, weight)
    shape = conv.shape
    biased = te.compute(shape, lambda *i: conv(*i) + bias[i[-1]], name="biased")
    scaled = te.compute(shape, lambda *i: biased(*i) * scale[i[-1]], name="scaled")
    moved = te.compute(shape, lambda *i: scaled(*i) + offset[i[-1]], name="moved")
    out = topi.nn.relu(moved)

    def reference(data: Array, weight: Array, bias: Array, scale: Array, offset: Array) -> Array:
        conv = convolved(sizes, data, weight)
        out: Array = np.maximum((conv + bias) * scale + offset, 0)
        return out

    return sizes.precision.workload(name, (data, weight, bias, scale, offset, out), reference)


def placeholders(sizes: ConvolutionSizes) -> tuple[Any, Any]:
    """Data and weight."""
    shape = (sizes.batch, *sizes.space, sizes.channels)
    kernel = [sizes.kernel] * len(sizes.space)
    weight_shape = (*kernel, sizes.per_group[0], sizes.filters)
    data = te.placeholder(shape, sizes.precision.data, name="data")
    return data, te.placeholder(weight_shape, sizes.precision.weight, name="weight")


def convolve(sizes: ConvolutionSizes, data: Any, weight: Any) -> Any:
    """The sums `[batch, *out, filters]`; padding is a separate stage."""
    ranks = range(len(sizes.space))
    padded = pad(data, [0, *[sizes.padding] * len(ranks), 0])
    window = [te.reduce_axis((0, sizes.kernel), f"r{'zyx'[-len(ranks) :][i]}") for i in ranks]
    channels, filters = sizes.per_group
    rc = te.reduce_axis((0, channels), "rc")

    def point(*index: Any) -> Any:
        n, *place, f = index
        at = [p * sizes.stride + r * sizes.dilation for p, r in zip(place, window, strict=True)]
        channel = rc if sizes.groups == 1 else f // filters * channels + rc
        factors = padded(n, *at, channel), weight(*window, rc, f)
        return te.sum(sizes.precision.multiply(*factors), axis=[*window, rc])

    return te.compute((sizes.batch, *sizes.out, sizes.filters), point, name="conv")


def pad(data: Any, margins: Sequence[int], after: Sequence[int] | None = None) -> Any:
    """`data` with zeros before and, the same many by default, behind each dimension."""
    ends = margins if after is None else after
    if not any(margins) and not any(ends):
        return data
    return topi.nn.pad(data, list(margins), list(ends), name="padded")


def convolved(sizes: ConvolutionSizes, data: Array, weight: Array) -> Array:
    """The convolution in NumPy: a matrix product per image and group."""
    rank = len(sizes.space)
    seen = sliding_windows(data, sizes.kernel, sizes.stride, sizes.padding, dilation=sizes.dilation)
    out = np.empty((sizes.batch, *sizes.out, sizes.filters), dtype=data.dtype)
    channels, filters = sizes.per_group
    for n, g in np.ndindex(sizes.batch, sizes.groups):
        image = np.moveaxis(seen[n], rank, -1)[..., g * channels : (g + 1) * channels]
        part = slice(g * filters, (g + 1) * filters)
        columns = image.reshape(math.prod(sizes.out), -1)
        product = columns @ weight[..., part].reshape(columns.shape[1], filters)
        out[n, ..., part] = product.reshape(*sizes.out, filters)
    return out
