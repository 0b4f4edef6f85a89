"""NumPy's view of sliding windows, shared by the references of convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ansor.workloads.workload import Array


def sliding_windows(
    data: Array, kernel: int, stride: int, padding: int, fill: float = 0.0, dilation: int = 1
) -> Array:
    """Windows over the spatial dimensions of channels-last `data` `[N, *space, C]`.

    Returns:
        `[N, *out, C, *kernel]`, `kernel` points, `dilation` apart, along each spatial dimension.
    """
    space = range(1, data.ndim - 1)
    padded = np.pad(data, _margins(data.ndim, padding), constant_values=fill)
    reach = [(kernel - 1) * dilation + 1] * len(space)
    view = np.lib.stride_tricks.sliding_window_view(padded, reach, tuple(space))
    starts = (slice(None), *(slice(None, None, stride) for _ in space), slice(None))
    points = (slice(None, None, dilation) for _ in space)
    chosen = (*starts, *points)
    return view[chosen]


def _margins(ndim: int, padding: int) -> Sequence[tuple[int, int]]:
    return [(0, 0), *[(padding, padding)] * (ndim - 2), (0, 0)]


def output_size(size: int, kernel: int, stride: int, padding: int) -> int:
    """Points of the output along one dimension."""
    return (size + 2 * padding - kernel) // stride + 1
