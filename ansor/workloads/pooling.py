"""Pooling, channels last."""

from __future__ import annotations

import numpy as np
from tvm import te, topi

from ansor.workloads.windows import sliding_windows
from ansor.workloads.workload import Array, Workload


def max_pool2d(
    batch: int = 1,
    height: int = 56,
    width: int = 56,
    channels: int = 64,
    kernel: int = 3,
    stride: int = 2,
    padding: int = 1,
) -> Workload:
    """Maximum over windows of data `[batch, height, width, channels]`."""
    data = te.placeholder((batch, height, width, channels), name="data")
    sizes = (kernel, kernel), (stride, stride), (1, 1), (padding,) * 4
    out = topi.nn.pool2d(data, *sizes, "max", layout="NHWC")

    def reference(data: Array) -> Array:
        out: Array = sliding_windows(data, kernel, stride, padding, fill=-np.inf).max(axis=(4, 5))
        return out

    return Workload("max_pool2d", (data, out), reference)


def global_average_pool2d(
    batch: int = 1, height: int = 7, width: int = 7, channels: int = 512
) -> Workload:
    """Mean over the spatial dimensions of data `[batch, height, width, channels]`."""
    data = te.placeholder((batch, height, width, channels), name="data")
    out = topi.nn.adaptive_pool(data, (1, 1), "avg", layout="NHWC")
    return Workload("global_average_pool2d", (data, out), _mean)


def _mean(data: Array) -> Array:
    out: Array = data.mean(axis=(1, 2), keepdims=True)
    return out
