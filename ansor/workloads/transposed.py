"""The transpose of a convolution, channels last, without a multiplication by zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import te

from ansor.errors import ArgumentError
from ansor.workloads.convolution_nd import pad
from ansor.workloads.workload import Array, Workload


def transposed_convolution(
    name: str,
    batch: int,
    height: int,
    width: int,
    channels: int,
    filters: int,
    kernel: int,
    stride: int,
    padding: int,
) -> Workload:
    """Data `[batch, height, width, channels]`, weight `[kernel, kernel, channels, filters]`.

    A point of the result meets only every `stride`-th point of the kernel: those at the same
    distance modulo `stride`, ``kernel / stride`` of them along each dimension.

    Raises:
        ArgumentError: the stride does not divide the kernel, or the padding is not smaller.
    """
    if kernel % stride or padding >= kernel:
        raise ArgumentError("kernel", kernel, f"must be a multiple of {stride} above {padding}")
    out = [(size - 1) * stride - 2 * padding + kernel for size in (height, width)]
    data = te.placeholder((batch, height, width, channels), name="data")
    weight = te.placeholder((kernel, kernel, channels, filters), name="weight")
    conv = transposed_convolution_tensor(
        data, weight, (stride, stride), (padding, padding), out, "conv"
    )

    def reference(data: Array, weight: Array) -> Array:
        return _scattered(data, weight, stride, padding)

    return Workload(name, (data, weight, conv), reference)


def transposed_convolution_tensor(
    data: Any,
    weight: Any,
    strides: Sequence[int],
    padding: Sequence[int],
    out: Sequence[int],
    name: str,
) -> Any:
    """The TE tensor `[batch, *out, filters]`.

    Args:
        data: `[batch, height, width, channels]`.
        weight: `[height, width, channels, filters]`, heights and widths multiples of the strides.
        strides: of height and width.
        padding: points cut off before the first, less than the kernel's.
        out: height and width of the result.
    """
    (sy, sx), kernel = strides, [int(n) for n in weight.shape[:2]]
    ty, tx = (k // s for k, s in zip(kernel, strides, strict=True))
    oy, ox = (p % s for p, s in zip(padding, strides, strict=True))
    before = zeros_before(kernel, strides, padding)
    spans = [
        (n - 1 + shift) // s + taps
        for n, shift, s, taps in zip(out, (oy, ox), strides, (ty, tx), strict=True)
    ]
    sizes = [int(n) for n in data.shape[1:3]]
    after = [max(0, n - b - s) for n, b, s in zip(spans, before, sizes, strict=True)]
    padded = pad(data, [0, *before, 0], [0, *after, 0])
    ry, rx = te.reduce_axis((0, ty), "ry"), te.reduce_axis((0, tx), "rx")
    rc = te.reduce_axis((0, int(data.shape[3])), "rc")
    return te.compute(
        (data.shape[0], *out, weight.shape[3]),
        lambda n, y, x, f: te.sum(
            padded[n, (y + oy) // sy + ry, (x + ox) // sx + rx, rc]
            * weight[(y + oy) % sy + (ty - 1 - ry) * sy, (x + ox) % sx + (tx - 1 - rx) * sx, rc, f],
            axis=[ry, rx, rc],
        ),
        name=name,
    )


def zeros_before(
    kernel: Sequence[int], strides: Sequence[int], padding: Sequence[int]
) -> list[int]:
    """Number of zeros before the data along each side; each output reads a window."""
    return [k // s - 1 - p // s for k, s, p in zip(kernel, strides, padding, strict=True)]


def _scattered(data: Array, weight: Array, stride: int, padding: int) -> Array:
    """Each point of `data` added at all places of the kernel."""
    batch, height, width, _ = data.shape
    kernel, filters = weight.shape[0], weight.shape[3]
    reach = [(size - 1) * stride + kernel for size in (height, width)]
    whole = np.zeros((batch, *reach, filters), dtype=np.float32)
    for y, x in np.ndindex(kernel, kernel):
        rows, columns = (
            slice(start, start + (size - 1) * stride + 1, stride)
            for start, size in ((y, height), (x, width))
        )
        whole[:, rows, columns] += data @ weight[y, x]
    return whole[:, padding : reach[0] - padding, padding : reach[1] - padding]
