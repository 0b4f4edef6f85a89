"""The transpose of a convolution, channels last, without a multiplication by zero."""

from __future__ import annotations

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
        raise ArgumentError("kernel", kernel, f"a multiple of {stride} and more than {padding}")
    taps, shift = kernel // stride, padding % stride
    before = taps - 1 - padding // stride
    out = [(size - 1) * stride - 2 * padding + kernel for size in (height, width)]
    spans = [(size - 1 + shift) // stride + taps for size in out]
    after = [span - before - size for span, size in zip(spans, (height, width), strict=True)]

    data = te.placeholder((batch, height, width, channels), name="data")
    weight = te.placeholder((kernel, kernel, channels, filters), name="weight")
    padded = pad(data, [0, before, before, 0], [0, *after, 0])
    ry, rx = te.reduce_axis((0, taps), "ry"), te.reduce_axis((0, taps), "rx")
    rc = te.reduce_axis((0, channels), "rc")
    conv = te.compute(
        (batch, *out, filters),
        lambda n, y, x, f: te.sum(
            padded[n, (y + shift) // stride + ry, (x + shift) // stride + rx, rc]
            * weight[
                (y + shift) % stride + (taps - 1 - ry) * stride,
                (x + shift) % stride + (taps - 1 - rx) * stride,
                rc,
                f,
            ],
            axis=[ry, rx, rc],
        ),
        name="conv",
    )

    def reference(data: Array, weight: Array) -> Array:
        return _scattered(data, weight, stride, padding)

    return Workload(name, (data, weight, conv), reference)


def _scattered(data: Array, weight: Array, stride: int, padding: int) -> Array:
    """Each point of `data` added wherever the kernel takes it."""
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
