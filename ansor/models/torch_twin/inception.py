"""Inception-v3 in PyTorch."""

# mypy: allow-subclassing-any

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from ansor.models.inception import InceptionConfig
from ansor.models.inception_shapes import MAX, MEAN, MIXED, STEM, Branch, ConvShape, Mixed


class TorchBasicConv(nn.Module):
    """Convolution, batch normalisation, ReLU."""

    def __init__(self, inputs: int, outputs: int, shape: ConvShape) -> None:
        super().__init__()
        kernel, padding = shape.kernel, shape.padding
        self.conv = nn.Conv2d(inputs, outputs, kernel, shape.stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=shape.epsilon)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, in, H, W] -> [N, out, H', W']`."""
        return torch.relu(self.bn(self.conv(x)))


class TorchMixedBlock(nn.Module):
    """Branches side by side."""

    def __init__(self, inputs: int, mixed: Mixed, divisor: int) -> None:
        super().__init__()
        self.branches = mixed.branches
        self.channels = 0  # of the result
        for branch in mixed.branches:
            channels = inputs
            for shape in branch.convs:
                outputs = shape.channels // divisor
                self.add_module(shape.name, TorchBasicConv(channels, outputs, shape))
                channels = outputs
            for fork in branch.forks:
                outputs = fork.channels // divisor
                self.add_module(fork.name, TorchBasicConv(channels, outputs, fork))
            forked = sum(fork.channels // divisor for fork in branch.forks)
            self.channels += forked or channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, in, H, W] -> [N, channels, H', W']`."""
        parts = [part for branch in self.branches for part in self._parts(x, branch)]
        return torch.cat(parts, dim=1)

    def _parts(self, x: torch.Tensor, branch: Branch) -> list[torch.Tensor]:
        x = _pooled(x, branch.pool)
        for shape in branch.convs:
            x = getattr(self, shape.name)(x)
        return [getattr(self, fork.name)(x) for fork in branch.forks] or [x]


def _pooled(x: torch.Tensor, pool: str) -> torch.Tensor:
    if pool == MAX:
        return functional.max_pool2d(x, 3, stride=2)
    return functional.avg_pool2d(x, 3, stride=1, padding=1) if pool == MEAN else x


class TorchInception(nn.Module):
    """The network: stem, mixed blocks, mean over the image, classifier."""

    def __init__(self, config: InceptionConfig) -> None:
        super().__init__()
        channels = 3
        for shape in (shape for row in STEM for shape in row):
            outputs = shape.channels // config.divisor
            self.add_module(shape.name, TorchBasicConv(channels, outputs, shape))
            channels = outputs
        for mixed in MIXED:
            block = TorchMixedBlock(channels, mixed, config.divisor)
            self.add_module(mixed.name, block)
            channels = block.channels
        self.fc = nn.Linear(channels, config.classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, 3, H, W] -> [N, classes]`."""
        for row in STEM:
            for shape in row:
                x = getattr(self, shape.name)(x)
            x = functional.max_pool2d(x, 3, stride=2)
        for mixed in MIXED:
            x = getattr(self, mixed.name)(x)
        logits: torch.Tensor = self.fc(x.mean((2, 3)))
        return logits
