"""ResNet in PyTorch."""

# mypy: allow-subclassing-any

from __future__ import annotations

import torch
from torch import nn

from ansor.models.resnet import BlockShape, ResNetConfig, block_shapes
from ansor.models.torch_twin.layers import norm


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


def _shortcut(shape: BlockShape) -> nn.Module | None:
    if not shape.projects:
        return None
    conv = _conv(shape.in_channels, shape.out_channels, 1, shape.stride)
    return nn.Sequential(conv, norm(shape.out_channels))


class TorchBasicBlock(nn.Module):
    """Two 3×3 convolutions beside a shortcut."""

    def __init__(self, shape: BlockShape) -> None:
        super().__init__()
        self.conv1 = _conv(shape.in_channels, shape.channels, 3, shape.stride)
        self.bn1 = norm(shape.channels)
        self.conv2 = _conv(shape.channels, shape.out_channels, 3)
        self.bn2 = norm(shape.out_channels)
        self.downsample = _shortcut(shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, in, H, W] -> [N, out, H/stride, W/stride]`."""
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class TorchBottleneck(nn.Module):
    """A 3×3 convolution between two 1×1 convolutions, beside a shortcut."""

    def __init__(self, shape: BlockShape) -> None:
        super().__init__()
        self.conv1 = _conv(shape.in_channels, shape.channels, 1)
        self.bn1 = norm(shape.channels)
        self.conv2 = _conv(shape.channels, shape.channels, 3, shape.stride)
        self.bn2 = norm(shape.channels)
        self.conv3 = _conv(shape.channels, shape.out_channels, 1)
        self.bn3 = norm(shape.out_channels)
        self.downsample = _shortcut(shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, in, H, W] -> [N, out, H/stride, W/stride]`."""
        y = torch.relu(self.bn1(self.conv1(x)))
        y = torch.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class TorchResNet(nn.Module):
    """The network: stem, stages, mean over the image, classifier."""

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        block = TorchBottleneck if config.bottleneck else TorchBasicBlock
        self.conv1 = nn.Conv2d(3, config.width, 7, stride=2, padding=3, bias=False)
        self.bn1 = norm(config.width)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.depth = len(config.blocks)
        for index, shapes in enumerate(block_shapes(config), start=1):
            setattr(self, f"layer{index}", nn.Sequential(*map(block, shapes)))
        features = (config.width << (self.depth - 1)) * config.expansion
        self.fc = nn.Linear(features, config.classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, 3, H, W] -> [N, classes]`."""
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        for index in range(1, self.depth + 1):
            x = getattr(self, f"layer{index}")(x)
        logits: torch.Tensor = self.fc(x.mean((2, 3)))
        return logits
