"""Convolutions, channels last, with padding as a separate stage."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import te, topi

from ansor.errors import ArgumentError
from ansor.workloads.precision import precision
from ansor.workloads.windows import output_size, sliding_windows
from ansor.workloads.workload import Array, Workload


def conv1d(
    batch: int = 1,
    length: int = 64,
    channels: int = 32,
    filters: int = 32,
    kernel: int = 3,
    stride: int = 1,
    padding: int = 1,
    *,
    dtype: str = "float32",
) -> Workload:
    """Data `[batch, length, channels]`, weight `[kernel, channels, filters]`."""
    own = precision(dtype)
    data = te.placeholder((batch, length, channels), own.data, name="data")
    weight = te.placeholder((kernel, channels, filters), own.weight, name="weight")
    out = _output_size(length, kernel, stride, padding)
    padded = _pad(data, padding)
    rx, rc = te.reduce_axis((0, kernel), "rx"), te.reduce_axis((0, channels), "rc")
    conv = te.compute(
        (batch, out, filters),
        lambda n, x, f: te.sum(
            own.multiply(padded[n, x * stride + rx, rc], weight[rx, rc, f]), axis=[rx, rc]
        ),
        name="conv",
    )

    def reference(data: Array, weight: Array) -> Array:
        seen = sliding_windows(data, kernel, stride, padding)
        out: Array = np.einsum("nxck,kcf->nxf", seen, weight)
        return out

    return own.workload("conv1d", (data, weight, conv), reference)


def conv2d(
    batch: int = 1,
    height: int = 56,
    width: int = 56,
    channels: int = 64,
    filters: int = 64,
    kernel: int = 3,
    stride: int = 1,
    padding: int = 1,
    *,
    dtype: str = "float32",
) -> Workload:
    """Convolution, bias and ReLU: data `[batch, height, width, channels]`, weight
    `[kernel, kernel, channels, filters]`, bias `[filters]` in the dtype of the sums."""
    own = precision(dtype)
    data = te.placeholder((batch, height, width, channels), own.data, name="data")
    weight = te.placeholder((kernel, kernel, channels, filters), own.weight, name="weight")
    bias = te.placeholder((filters,), own.sums, name="bias")
    out = [_output_size(size, kernel, stride, padding) for size in (height, width)]
    padded = _pad(data, padding)
    ry, rx = te.reduce_axis((0, kernel), "ry"), te.reduce_axis((0, kernel), "rx")
    rc = te.reduce_axis((0, channels), "rc")
    conv = te.compute(
        (batch, *out, filters),
        lambda n, y, x, f: te.sum(
            own.multiply(padded[n, y * stride + ry, x * stride + rx, rc], weight[ry, rx, rc, f]),
            axis=[ry, rx, rc],
        ),
        name="conv",
    )
    biased = te.compute(conv.shape, lambda n, y, x, f: conv[n, y, x, f] + bias[f], name="add")

    def reference(data: Array, weight: Array, bias: Array) -> Array:
        seen = sliding_windows(data, kernel, stride, padding)
        conv: Array = np.einsum("nyxckl,klcf->nyxf", seen, weight, optimize=True)
        out: Array = np.maximum(conv + bias, 0)
        return out

    return own.workload("conv2d", (data, weight, bias, topi.nn.relu(biased)), reference)


def depthwise_conv2d(
    batch: int = 1,
    height: int = 56,
    width: int = 56,
    channels: int = 64,
    kernel: int = 3,
    stride: int = 1,
    padding: int = 1,
    *,
    dtype: str = "float32",
) -> Workload:
    """One filter per channel: data `[batch, height, width, channels]`, weight
    `[kernel, kernel, channels]`."""
    own = precision(dtype)
    data = te.placeholder((batch, height, width, channels), own.data, name="data")
    weight = te.placeholder((kernel, kernel, channels), own.weight, name="weight")
    out = [_output_size(size, kernel, stride, padding) for size in (height, width)]
    padded = _pad(data, padding)
    ry, rx = te.reduce_axis((0, kernel), "ry"), te.reduce_axis((0, kernel), "rx")
    conv = te.compute(
        (batch, *out, channels),
        lambda n, y, x, c: te.sum(
            own.multiply(padded[n, y * stride + ry, x * stride + rx, c], weight[ry, rx, c]),
            axis=[ry, rx],
        ),
        name="conv",
    )

    def reference(data: Array, weight: Array) -> Array:
        seen = sliding_windows(data, kernel, stride, padding)
        out: Array = np.einsum("nyxckl,klc->nyxc", seen, weight)
        return out

    return own.workload("depthwise_conv2d", (data, weight, conv), reference)


def transposed_conv2d(
    batch: int = 1,
    height: int = 4,
    width: int = 4,
    channels: int = 256,
    filters: int = 128,
    kernel: int = 4,
    stride: int = 2,
    padding: int = 1,
) -> Workload:
    """The convolution's transpose, channels first: data `[batch, channels, height, width]`, weight
    `[channels, filters, kernel, kernel]`."""
    data = te.placeholder((batch, channels, height, width), name="data")
    weight = te.placeholder((channels, filters, kernel, kernel), name="weight")
    strides, margins = (stride, stride), (padding, padding)
    out = topi.nn.conv2d_transpose_nchw(data, weight, strides, margins, "float32", (0, 0))

    def reference(data: Array, weight: Array) -> Array:
        reach = [(size - 1) * stride + kernel for size in (height, width)]
        whole = np.zeros((batch, filters, *reach), dtype=np.float32)
        for y, x in np.ndindex(kernel, kernel):
            rows, columns = (
                slice(start, start + (size - 1) * stride + 1, stride)
                for start, size in ((y, height), (x, width))
            )
            whole[:, :, rows, columns] += np.einsum("nchw,cf->nfhw", data, weight[:, :, y, x])
        return whole[:, :, padding : reach[0] - padding, padding : reach[1] - padding]

    return Workload("transposed_conv2d", (data, weight, out), reference)


def _pad(data: Any, padding: int) -> Any:
    """`data` with zeros around its spatial dimensions."""
    if padding == 0:
        return data
    margins = [0, *[padding] * (len(data.shape) - 2), 0]
    return topi.nn.pad(data, margins, name="padded")


def _output_size(size: int, kernel: int, stride: int, padding: int) -> int:
    out = output_size(size, kernel, stride, padding)
    if out < 1:
        remedy = f"must be at most {size + 2 * padding}, padding included"
        raise ArgumentError("kernel", kernel, remedy)
    return out
