"""VGG in PyTorch."""

# mypy: allow-subclassing-any

from __future__ import annotations

import torch
from torch import nn

from ansor.models.vgg import VggConfig


class TorchVgg(nn.Module):
    """The network: stages of 3×3 convolutions, which a pooling ends, and three linear layers."""

    def __init__(self, config: VggConfig) -> None:
        super().__init__()
        channels, layers = 3, []
        for out, count in config.stages:
            for _ in range(count):
                layers += [nn.Conv2d(channels, out, 3, padding=1), nn.ReLU()]
                channels = out
            layers.append(nn.MaxPool2d(2, stride=2))
        self.features = nn.Sequential(*layers)
        first, second = (config.flat, config.hidden), (config.hidden, config.hidden)
        parts = [part for sizes in (first, second) for part in _hidden(*sizes)]
        self.classifier = nn.Sequential(*parts, nn.Linear(config.hidden, config.classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, 3, H, W] -> [N, classes]`."""
        logits: torch.Tensor = self.classifier(self.features(x).flatten(1))
        return logits


def _hidden(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Linear(inputs, outputs), nn.ReLU(), nn.Dropout()]
