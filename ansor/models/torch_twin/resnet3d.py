"""3D ResNet in PyTorch."""

# mypy: allow-subclassing-any

from __future__ import annotations

import torch
from torch import nn

from ansor.models.resnet import BlockShape
from ansor.models.resnet3d import ResNet3dConfig


def _conv_norm(inputs: int, outputs: int, kernel: int, stride: int) -> list[nn.Module]:
    conv = nn.Conv3d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    return [conv, nn.BatchNorm3d(outputs)]


class _TorchBlock(nn.Module):
    """Two 3×3×3 convolutions beside a shortcut."""

    def __init__(self, shape: BlockShape) -> None:
        super().__init__()
        inputs, out = shape.in_channels, shape.out_channels
        self.conv1 = nn.Sequential(*_conv_norm(inputs, out, 3, shape.stride), nn.ReLU())
        self.conv2 = nn.Sequential(*_conv_norm(out, out, 3, 1))
        shortcut = _conv_norm(inputs, out, 1, shape.stride) if shape.projects else []
        self.downsample = nn.Sequential(*shortcut)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, in, D, H, W] -> [N, out, D/stride, H/stride, W/stride]`."""
        return torch.relu(self.conv2(self.conv1(x)) + self.downsample(x))


class TorchResNet3d(nn.Module):
    """The network: stem, stages, mean over the video, classifier."""

    def __init__(self, config: ResNet3dConfig) -> None:
        super().__init__()
        conv = nn.Conv3d(3, config.width, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False)
        self.stem = nn.Sequential(conv, nn.BatchNorm3d(config.width), nn.ReLU())
        stages = config.stages()
        self.depth = len(stages)
        for index, shapes in enumerate(stages, start=1):
            setattr(self, f"layer{index}", nn.Sequential(*map(_TorchBlock, shapes)))
        self.fc = nn.Linear(stages[-1][-1].out_channels, config.classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, 3, D, H, W] -> [N, classes]`."""
        x = self.stem(x)
        for index in range(1, self.depth + 1):
            x = getattr(self, f"layer{index}")(x)
        logits: torch.Tensor = self.fc(x.mean((2, 3, 4)))
        return logits
