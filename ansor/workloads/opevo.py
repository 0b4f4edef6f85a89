"""The operators of OpEvo's study (Gao et al., arXiv 2006.05664): matrix products, and AlexNet's
first convolutions.

The shapes are those of the study's experiments in NNI, `examples/trials/systems_auto_tuning/opevo`,
such as ``bmm/B960N128K128M64PTN`` (OPE.4: the first operand is transposed).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from tvm import te, topi

from ansor.workloads.matmul import matmul
from ansor.workloads.windows import output_size
from ansor.workloads.workload import Array, Workload


def product(
    name: str, batch: int, rows: int, depth: int, columns: int, turned: str = ""
) -> Workload:
    """Batched ``C = A @ B``, A `[batch, rows, depth]` and B `[batch, depth, columns]`; what is
    named in `turned`, "A" or "B", is stored with its last two dimensions exchanged."""
    a_shape = (batch, depth, rows) if turned == "A" else (batch, rows, depth)
    b_shape = (batch, columns, depth) if turned == "B" else (batch, depth, columns)
    a, b = te.placeholder(a_shape, name="A"), te.placeholder(b_shape, name="B")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute(
        (batch, rows, columns),
        lambda n, i, j: te.sum(
            (a[n, k, i] if turned == "A" else a[n, i, k])
            * (b[n, j, k] if turned == "B" else b[n, k, j]),
            axis=k,
        ),
        name="C",
    )

    def reference(x: Array, y: Array) -> Array:
        left = x.transpose(0, 2, 1) if turned == "A" else x
        right = y.transpose(0, 2, 1) if turned == "B" else y
        out: Array = left @ right
        return out

    return Workload(name, (a, b, c), reference)


def convolution_nchw(
    name: str,
    batch: int,
    channels: int,
    size: int,
    filters: int,
    kernel: int,
    stride: int,
    padding: int,
) -> Workload:
    """Channels first, as in the study: data `[batch, channels, size, size]`, weight
    `[filters, channels, kernel, kernel]`."""
    data = te.placeholder((batch, channels, size, size), name="data")
    weight = te.placeholder((filters, channels, kernel, kernel), name="weight")
    padded = topi.nn.pad(data, [0, 0, padding, padding], name="padded") if padding else data
    out = output_size(size, kernel, stride, padding)
    ry, rx = te.reduce_axis((0, kernel), "ry"), te.reduce_axis((0, kernel), "rx")
    rc = te.reduce_axis((0, channels), "rc")
    conv = te.compute(
        (batch, filters, out, out),
        lambda n, f, y, x: te.sum(
            padded[n, rc, y * stride + ry, x * stride + rx] * weight[f, rc, ry, rx],
            axis=[rc, ry, rx],
        ),
        name="conv",
    )

    def reference(data: Array, weight: Array) -> Array:
        margins = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
        view = np.lib.stride_tricks.sliding_window_view(
            np.pad(data, margins), (kernel, kernel), (2, 3)
        )
        result = np.empty((batch, filters, out, out), dtype=np.float32)
        for n, seen in enumerate(view[:, :, ::stride, ::stride]):
            columns = seen.transpose(0, 3, 4, 1, 2).reshape(-1, out * out)
            result[n] = (weight.reshape(filters, -1) @ columns).reshape(filters, out, out)
        return result

    return Workload(name, (data, weight, conv), reference)


_MEMBERS: Mapping[str, Callable[[str], Workload]] = MappingProxyType(
    {
        "OPE.0": lambda _: matmul(rows=512, depth=1024, columns=1024),
        "OPE.1": lambda _: matmul(rows=512, depth=1024, columns=4096),
        "OPE.2": lambda _: matmul(rows=512, depth=4096, columns=1024),
        "OPE.3": lambda name: product(name, 960, 128, 128, 64),
        "OPE.4": lambda name: product(name, 960, 128, 128, 64, turned="A"),
        "OPE.5": lambda name: product(name, 960, 128, 64, 128, turned="B"),
        "OPE.6": lambda name: convolution_nchw(name, 512, 3, 227, 64, 11, 4, 0),
        "OPE.7": lambda name: convolution_nchw(name, 512, 64, 27, 192, 5, 1, 2),
    }
)
OPEVO = tuple(_MEMBERS)


def opevo(name: str) -> Workload:
    """The operator `name` of `OPEVO`."""
    made = _MEMBERS[name](name)
    return Workload(name, made.tensors, made.reference)
