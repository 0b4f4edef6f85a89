"""A convolution whose points are small matrices."""

from __future__ import annotations

import numpy as np
from tvm import te

from ansor.workloads.convolution_nd import pad
from ansor.workloads.windows import output_size, sliding_windows
from ansor.workloads.workload import Array, Workload


def capsule_convolution(
    name: str,
    batch: int,
    height: int,
    width: int,
    channels: int,
    filters: int,
    kernel: int,
    stride: int,
    padding: int,
    capsule: int,
) -> Workload:
    """Data `[batch, height, width, capsule, capsule, channels]`, weight
    `[kernel, kernel, capsule, capsule, channels, filters]`; the matrices are multiplied."""
    square = (capsule, capsule)
    data = te.placeholder((batch, height, width, *square, channels), name="data")
    weight = te.placeholder((kernel, kernel, *square, channels, filters), name="weight")
    padded = pad(data, [0, padding, padding, 0, 0, 0])
    out = [output_size(size, kernel, stride, padding) for size in (height, width)]
    ry, rx = te.reduce_axis((0, kernel), "ry"), te.reduce_axis((0, kernel), "rx")
    rk, rc = te.reduce_axis((0, capsule), "rk"), te.reduce_axis((0, channels), "rc")
    conv = te.compute(
        (batch, *out, *square, filters),
        lambda n, y, x, i, j, f: te.sum(
            padded[n, y * stride + ry, x * stride + rx, i, rk, rc] * weight[ry, rx, rk, j, rc, f],
            axis=[ry, rx, rk, rc],
        ),
        name="conv",
    )

    def reference(data: Array, weight: Array) -> Array:
        flat = data.reshape(batch, height, width, -1)
        seen = sliding_windows(flat, kernel, stride, padding)
        seen = seen.reshape(batch, *out, *square, channels, kernel, kernel)
        result: Array = np.einsum("nyxikcab,abkjcf->nyxijf", seen, weight, optimize=True)
        return result

    return Workload(name, (data, weight, conv), reference)
