"""A 3×3 convolution by Winograd's minimal filtering, with bias and activation."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import te

from ansor.workloads.minimal_filtering.stages import Form, filtered, joined
from ansor.workloads.minimal_filtering.transforms import F2, F3, F4
from ansor.workloads.windows import sliding_windows
from ansor.workloads.workload import Array, Workload


def winograd_conv2d(
    height: int = 56,
    width: int = 56,
    channels: int = 64,
    filters: int = 64,
    relu: int = 1,
    tile: int = 4,
    join: int = 0,
) -> Workload:
    """Stride 1, padding 1, data NHWC, batch 1, bias; without `join`, height and width are multiples
    of `tile`.

    Inputs: data `[1, height, width, channels]`, transformed weights `[s, s, channels, filters]`
    (see `transform_weight`; s = tile + 2), bias `[filters]`. Output
    `[1, height / tile, tile, width / tile, tile, filters]`, which lies in memory as NHWC does; with
    `join`, `[1, height, width, filters]`.
    """
    transform = {f.tile: f for f in (F2, F3, F4)}[tile]
    size = transform.size
    data = te.placeholder((1, height, width, channels), name="data")
    weight = te.placeholder((size, size, channels, filters), name="weight")
    bias = te.placeholder((filters,), name="bias")
    form = Form((1, 1), (height, width))
    tiles = filtered(data, weight, transform, form)
    tiles = joined(tiles, form, "joined") if join else tiles

    def finished(value: Any) -> Any:
        return te.max(value, 0) if relu else value

    def apart(n: Any, y: Any, u: Any, x: Any, v: Any, f: Any) -> Any:
        return finished(tiles[n, y, u, x, v, f] + bias[f])

    def together(n: Any, h: Any, w: Any, f: Any) -> Any:
        return finished(tiles[n, h, w, f] + bias[f])

    shape = tiles.shape
    out = te.compute(shape, together if join else apart, name="out")

    def reference(data: Array, weight: Array, bias: Array) -> Array:
        beyond = [(0, 0), (0, -height % tile), (0, -width % tile), (0, 0)]
        seen = sliding_windows(np.pad(data, beyond), size, tile, 1)
        into, back = np.asarray(transform.data, float), np.asarray(transform.output, float)
        product = np.einsum("ai,bj,nyxcij,abcf->abnyxf", into, into, seen, weight, optimize=True)
        tiles = np.einsum("ua,vb,abnyxf->nyuxvf", back, back, product, optimize=True) + bias
        found = (np.maximum(tiles, 0) if relu else tiles).astype(np.float32)
        rows, columns = tile * found.shape[1], tile * found.shape[3]
        whole: Array = found.reshape(1, rows, columns, filters)
        return whole[:, :height, :width] if join else found

    return Workload("winograd_conv2d", (data, weight, bias, out), reference)
