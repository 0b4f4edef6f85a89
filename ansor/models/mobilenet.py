"""MobileNet-V2 (Sandler et al., 2018) as PyTorch users know it.

Attribute names give torchvision's parameter names ("features.1.conv.0.0.weight").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tvm.relax.frontend import nn

from ansor.models.layers import BatchNorm, Identity, global_avg_pool, relu6


@dataclass(frozen=True)
class MobileNetConfig:
    """Shape of the network: for each stage the expansion, channels, blocks and first stride."""

    stages: tuple[tuple[int, int, int, int], ...] = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )
    stem: int = 32  # channels of the first convolution
    features: int = 1280  # channels of the last one
    classes: int = 1000
    image: int = 224  # height and width of the input

    def network(self) -> nn.Module:
        """The network to be exported."""
        return MobileNet(self)

    def input_of(self, batch: int) -> tuple[str, tuple[int, ...]]:
        """Name and shape of the input."""
        return "x", (batch, 3, self.image, self.image)


MOBILENET_V2 = MobileNetConfig()


@dataclass(frozen=True)
class InvertedShape:
    """Channels and stride of one inverted residual block."""

    in_channels: int
    hidden: int
    out_channels: int
    stride: int

    @property
    def expands(self) -> bool:
        """Whether a 1×1 convolution comes first."""
        return self.hidden != self.in_channels

    @property
    def adds(self) -> bool:
        """Whether the input is added to the result."""
        return self.stride == 1 and self.in_channels == self.out_channels


def inverted_shapes(config: MobileNetConfig) -> Iterator[InvertedShape]:
    """All blocks in order."""
    channels = config.stem
    for expansion, out, count, stride in config.stages:
        for number in range(count):
            yield InvertedShape(channels, channels * expansion, out, 1 if number else stride)
            channels = out


class _ConvNorm(nn.ModuleList):  # type: ignore[misc]
    """Convolution, batch normalisation, ReLU6."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
    ) -> None:
        conv = nn.Conv2D(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        super().__init__([conv, BatchNorm(outputs)])

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, in, H, W] -> [N, out, H/stride, W/stride]`."""
        return relu6(super().forward(x))


class InvertedResidual(nn.Module):  # type: ignore[misc]
    """1×1 up, 3×3 depthwise, 1×1 down without activation."""

    def __init__(self, shape: InvertedShape) -> None:
        super().__init__()
        hidden, out = shape.hidden, shape.out_channels
        layers: list[nn.Module] = [_ConvNorm(shape.in_channels, hidden, 1)] * shape.expands
        layers.append(_ConvNorm(hidden, hidden, 3, shape.stride, groups=hidden))
        layers += [nn.Conv2D(hidden, out, 1, bias=False), BatchNorm(out)]
        self.conv = nn.ModuleList(layers)
        self.adds = shape.adds

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, in, H, W] -> [N, out, H/stride, W/stride]`."""
        y = self.conv(x)
        return nn.op.add(y, x) if self.adds else y


class MobileNet(nn.Module):  # type: ignore[misc]
    """The network: stem, blocks, last convolution, mean over the image, classifier."""

    def __init__(self, config: MobileNetConfig) -> None:
        super().__init__()
        shapes = list(inverted_shapes(config))
        layers: list[nn.Module] = [_ConvNorm(3, config.stem, 3, stride=2)]
        layers += [InvertedResidual(shape) for shape in shapes]
        layers.append(_ConvNorm(shapes[-1].out_channels, config.features, 1))
        self.features = nn.ModuleList(layers)
        linear = nn.Linear(config.features, config.classes)
        self.classifier = nn.ModuleList([Identity(), linear])  # dropout comes first

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, 3, H, W] -> [N, classes]`."""
        return self.classifier(global_avg_pool(self.features(x)))
