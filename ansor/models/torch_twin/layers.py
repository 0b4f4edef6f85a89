"""Layers that several twins share."""

from __future__ import annotations

from torch import nn


def norm(channels: int) -> nn.BatchNorm2d:
    """Batch normalisation of images."""
    return nn.BatchNorm2d(channels)
