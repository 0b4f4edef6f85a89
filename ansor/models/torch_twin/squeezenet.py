"""SqueezeNet 1.1 in PyTorch."""

# mypy: allow-subclassing-any

from __future__ import annotations

import torch
from torch import nn

from ansor.models.squeezenet import SqueezeNetConfig


class TorchFire(nn.Module):
    """1×1 down; then 1×1 and 3×3 up, side by side."""

    def __init__(self, inputs: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.expand1x1 = nn.Conv2d(squeezed, expanded, 1)
        self.expand3x3 = nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, in, H, W] -> [N, 2 * expanded, H, W]`."""
        x = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.expand1x1(x)), torch.relu(self.expand3x3(x))], dim=1)


class TorchSqueezeNet(nn.Module):
    """The network: stem, stages, convolution to the classes, mean over the image."""

    def __init__(self, config: SqueezeNetConfig) -> None:
        super().__init__()
        channels = config.stem
        layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, stride=2), nn.ReLU()]
        for stage in config.stages:
            layers.append(nn.MaxPool2d(3, stride=2, ceil_mode=True))
            for squeezed, expanded in stage:
                layers.append(TorchFire(channels, squeezed, expanded))
                channels = 2 * expanded
        self.features = nn.Sequential(*layers)
        last = nn.Conv2d(channels, config.classes, 1)
        self.classifier = nn.Sequential(nn.Dropout(), last, nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, 3, H, W] -> [N, classes]`."""
        logits: torch.Tensor = self.classifier(self.features(x)).mean((2, 3))
        return logits
