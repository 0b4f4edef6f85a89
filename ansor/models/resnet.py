"""ResNet (He et al., 2015) as PyTorch users know it: the stride sits in the 3×3 convolution.

Attribute names give torchvision's parameter names ("layer1.0.downsample.1.running_var").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tvm.relax.frontend import nn

from ansor.models.layers import BatchNorm, global_avg_pool, max_pool2d


@dataclass(frozen=True)
class ResNetConfig:
    """Shape of a residual network.

    `expansion` is 1 for blocks of two 3×3 convolutions and 4 for bottlenecks (1×1, 3×3, 1×1).
    """

    blocks: tuple[int, ...] = (2, 2, 2, 2)  # residual blocks per stage
    expansion: int = 1
    width: int = 64  # channels of the stem and of the first stage; doubles from stage to stage
    classes: int = 1000
    image: int = 224  # height and width of the input

    @property
    def bottleneck(self) -> bool:
        """Whether the blocks are bottlenecks."""
        return self.expansion > 1

    def network(self) -> nn.Module:
        """The network to be exported."""
        return ResNet(self)

    def input_of(self, batch: int) -> tuple[str, tuple[int, ...]]:
        """Name and shape of the input."""
        return "x", (batch, 3, self.image, self.image)


RESNET18 = ResNetConfig()
RESNET34 = ResNetConfig(blocks=(3, 4, 6, 3))
RESNET50 = ResNetConfig(blocks=(3, 4, 6, 3), expansion=4)


@dataclass(frozen=True)
class BlockShape:
    """Channels and stride of one residual block."""

    in_channels: int
    channels: int
    out_channels: int
    stride: int

    @property
    def projects(self) -> bool:
        """Whether the shortcut needs a 1×1 convolution."""
        return self.stride != 1 or self.in_channels != self.out_channels


def block_shapes(config: ResNetConfig) -> Iterator[list[BlockShape]]:
    """One list of block shapes per stage."""
    in_channels = config.width
    for stage, count in enumerate(config.blocks):
        channels = config.width << stage
        out = channels * config.expansion
        first = BlockShape(in_channels, channels, out, stride=1 if stage == 0 else 2)
        yield [first] + [BlockShape(out, channels, out, stride=1)] * (count - 1)
        in_channels = out


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2D:
    return nn.Conv2D(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


def _downsample(shape: BlockShape) -> nn.ModuleList:
    layers: list[nn.Module] = [_conv(shape.in_channels, shape.out_channels, 1, shape.stride)]
    return nn.ModuleList([*layers, BatchNorm(shape.out_channels)])


def _join(branch: nn.Tensor, x: nn.Tensor, downsample: nn.ModuleList | None) -> nn.Tensor:
    """Adds the shortcut, which comes second: fusion gives the sum to the operand that is first."""
    shortcut = x if downsample is None else downsample(x)
    return nn.op.relu(nn.op.add(branch, shortcut))


class BasicBlock(nn.Module):  # type: ignore[misc]
    """Two 3×3 convolutions beside a shortcut."""

    def __init__(self, shape: BlockShape) -> None:
        super().__init__()
        self.conv1 = _conv(shape.in_channels, shape.channels, 3, shape.stride)
        self.bn1 = BatchNorm(shape.channels)
        self.conv2 = _conv(shape.channels, shape.out_channels, 3)
        self.bn2 = BatchNorm(shape.out_channels)
        self.downsample = _downsample(shape) if shape.projects else None

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, in, H, W] -> [N, out, H/stride, W/stride]`."""
        y = nn.op.relu(self.bn1(self.conv1(x)))
        return _join(self.bn2(self.conv2(y)), x, self.downsample)


class Bottleneck(nn.Module):  # type: ignore[misc]
    """A 3×3 convolution between two 1×1 convolutions, beside a shortcut."""

    def __init__(self, shape: BlockShape) -> None:
        super().__init__()
        self.conv1 = _conv(shape.in_channels, shape.channels, 1)
        self.bn1 = BatchNorm(shape.channels)
        self.conv2 = _conv(shape.channels, shape.channels, 3, shape.stride)
        self.bn2 = BatchNorm(shape.channels)
        self.conv3 = _conv(shape.channels, shape.out_channels, 1)
        self.bn3 = BatchNorm(shape.out_channels)
        self.downsample = _downsample(shape) if shape.projects else None

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, in, H, W] -> [N, out, H/stride, W/stride]`."""
        y = nn.op.relu(self.bn1(self.conv1(x)))
        y = nn.op.relu(self.bn2(self.conv2(y)))
        return _join(self.bn3(self.conv3(y)), x, self.downsample)


class ResNet(nn.Module):  # type: ignore[misc]
    """The network: stem, stages, mean over the image, classifier."""

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        block = Bottleneck if config.bottleneck else BasicBlock
        self.conv1 = nn.Conv2D(3, config.width, 7, stride=2, padding=3, bias=False)
        self.bn1 = BatchNorm(config.width)
        self.depth = len(config.blocks)
        for index, shapes in enumerate(block_shapes(config), start=1):
            setattr(self, f"layer{index}", nn.ModuleList([block(shape) for shape in shapes]))
        features = (config.width << (self.depth - 1)) * config.expansion
        self.fc = nn.Linear(features, config.classes)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, 3, H, W] -> [N, classes]`."""
        x = nn.op.relu(self.bn1(self.conv1(x)))
        x = max_pool2d(x, size=3, stride=2, padding=1)
        for index in range(1, self.depth + 1):
            x = getattr(self, f"layer{index}")(x)
        return self.fc(global_avg_pool(x))
