"""A depthwise convolution and the pointwise one after it."""

from __future__ import annotations

import numpy as np
from tvm import te, topi

from ansor.workloads.windows import output_size, sliding_windows
from ansor.workloads.workload import Array, Workload


def separable_conv2d(
    height: int = 28,
    width: int = 28,
    channels: int = 64,
    filters: int = 128,
    kernel: int = 3,
    stride: int = 1,
    padding: int = 1,
) -> Workload:
    """Depthwise, ReLU, pointwise, ReLU: data `[1, height, width, channels]`, weights
    `[kernel, kernel, channels]` and `[channels, filters]`."""
    data = te.placeholder((1, height, width, channels), name="data")
    depthwise = te.placeholder((kernel, kernel, channels), name="depthwise")
    pointwise = te.placeholder((channels, filters), name="pointwise")
    margins = [0, padding, padding, 0]
    padded = topi.nn.pad(data, margins, name="padded") if padding else data
    out = [output_size(size, kernel, stride, padding) for size in (height, width)]
    ry, rx = te.reduce_axis((0, kernel), "ry"), te.reduce_axis((0, kernel), "rx")
    deep = te.compute(
        (1, *out, channels),
        lambda n, y, x, c: te.sum(
            padded[n, y * stride + ry, x * stride + rx, c] * depthwise[ry, rx, c], axis=[ry, rx]
        ),
        name="deep",
    )
    middle = topi.nn.relu(deep)
    k = te.reduce_axis((0, channels), "k")
    flat = te.compute(
        (1, *out, filters),
        lambda n, y, x, f: te.sum(middle[n, y, x, k] * pointwise[k, f], axis=k),
        name="flat",
    )

    def reference(data: Array, depthwise: Array, pointwise: Array) -> Array:
        seen = sliding_windows(data, kernel, stride, padding)
        deep = np.maximum(np.einsum("nyxckl,klc->nyxc", seen, depthwise), 0)
        found: Array = np.maximum(deep @ pointwise, 0)
        return found

    return Workload("separable_conv2d", (data, depthwise, pointwise, topi.nn.relu(flat)), reference)
