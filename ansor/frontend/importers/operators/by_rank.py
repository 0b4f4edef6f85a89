"""Relax's operators over lines, areas and volumes, by their number of spatial axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from tvm import relax

Entry = TypeVar("Entry")
ByRank = Mapping[int, Callable[..., Any]]


def by_rank(*entries: Entry) -> Mapping[int, Entry]:
    """The entries by number of spatial axes, from one on."""
    return MappingProxyType(dict(enumerate(entries, start=1)))


nn = relax.op.nn
SPATIAL = by_rank("W", "HW", "DHW")  # axes in the names of layouts
CONVOLUTIONS: ByRank = by_rank(nn.conv1d, nn.conv2d, nn.conv3d)
TRANSPOSED_CONVOLUTIONS: ByRank = by_rank(
    nn.conv1d_transpose, nn.conv2d_transpose, nn.conv3d_transpose
)
MAX_POOLS: ByRank = by_rank(nn.max_pool1d, nn.max_pool2d, nn.max_pool3d)
AVERAGE_POOLS: ByRank = by_rank(nn.avg_pool1d, nn.avg_pool2d, nn.avg_pool3d)
ADAPTIVE_AVERAGE_POOLS: ByRank = by_rank(
    nn.adaptive_avg_pool1d, nn.adaptive_avg_pool2d, nn.adaptive_avg_pool3d
)
