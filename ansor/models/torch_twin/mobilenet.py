"""MobileNet-V2 in PyTorch."""

# mypy: allow-subclassing-any

from __future__ import annotations

import torch
from torch import nn

from ansor.models.mobilenet import InvertedShape, MobileNetConfig, inverted_shapes
from ansor.models.torch_twin.layers import norm


class TorchConvNormActivation(nn.Sequential):
    """Convolution, batch normalisation, ReLU6."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
    ) -> None:
        padding = kernel // 2
        conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False)
        super().__init__(conv, norm(outputs), nn.ReLU6())


class TorchInvertedResidual(nn.Module):
    """1×1 up, 3×3 depthwise, 1×1 down without activation."""

    def __init__(self, shape: InvertedShape) -> None:
        super().__init__()
        hidden, out = shape.hidden, shape.out_channels
        layers: list[nn.Module] = [
            TorchConvNormActivation(shape.in_channels, hidden, 1)
        ] * shape.expands
        layers.append(TorchConvNormActivation(hidden, hidden, 3, shape.stride, groups=hidden))
        layers += [nn.Conv2d(hidden, out, 1, bias=False), norm(out)]
        self.conv = nn.Sequential(*layers)
        self.adds = shape.adds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, in, H, W] -> [N, out, H/stride, W/stride]`."""
        y: torch.Tensor = self.conv(x)
        return y + x if self.adds else y


class TorchMobileNet(nn.Module):
    """The network: stem, blocks, last convolution, mean over the image, classifier."""

    def __init__(self, config: MobileNetConfig) -> None:
        super().__init__()
        shapes = list(inverted_shapes(config))
        layers: list[nn.Module] = [TorchConvNormActivation(3, config.stem, 3, stride=2)]
        layers += [TorchInvertedResidual(shape) for shape in shapes]
        layers.append(TorchConvNormActivation(shapes[-1].out_channels, config.features, 1))
        self.features = nn.Sequential(*layers)
        linear = nn.Linear(config.features, config.classes)
        self.classifier = nn.Sequential(nn.Dropout(), linear)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, 3, H, W] -> [N, classes]`."""
        logits: torch.Tensor = self.classifier(self.features(x).mean((2, 3)))
        return logits
