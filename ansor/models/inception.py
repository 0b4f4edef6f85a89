"""Inception-v3 (Szegedy et al., 2015) without its auxiliary classifier.

Attribute names give torchvision's parameter names ("Mixed_5b.branch1x1.conv.weight").
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.relax.frontend import nn

from ansor.models.inception_shapes import MAX, MEAN, MIXED, STEM, Branch, ConvShape, Mixed
from ansor.models.layers import BatchNorm, avg_pool2d, global_avg_pool, max_pool2d


@dataclass(frozen=True)
class InceptionConfig:
    """Shape of the network."""

    divisor: int = 1  # of all numbers of channels
    classes: int = 1000
    image: int = 299  # height and width of the input

    def network(self) -> nn.Module:
        """The network to be exported."""
        return Inception(self)

    def input_of(self, batch: int) -> tuple[str, tuple[int, ...]]:
        """Name and shape of the input."""
        return "x", (batch, 3, self.image, self.image)


INCEPTION_V3 = InceptionConfig()


class ConvNorm(nn.Module):  # type: ignore[misc]
    """Convolution, batch normalisation, ReLU."""

    def __init__(self, inputs: int, outputs: int, shape: ConvShape) -> None:
        super().__init__()
        kernel, padding = list(shape.kernel), shape.padding
        self.conv = nn.Conv2D(inputs, outputs, kernel, shape.stride, padding, bias=False)
        self.bn = BatchNorm(outputs, shape.epsilon)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, in, H, W] -> [N, out, H', W']`."""
        return nn.op.relu(self.bn(self.conv(x)))


class MixedBlock(nn.Module):  # type: ignore[misc]
    """Branches side by side."""

    def __init__(self, inputs: int, mixed: Mixed, divisor: int) -> None:
        super().__init__()
        self.branches = mixed.branches
        self.channels = 0  # of the result
        for branch in mixed.branches:
            channels = inputs
            for shape in branch.convs:
                outputs = shape.channels // divisor
                setattr(self, shape.name, ConvNorm(channels, outputs, shape))
                channels = outputs
            for fork in branch.forks:
                setattr(self, fork.name, ConvNorm(channels, fork.channels // divisor, fork))
            forked = sum(fork.channels // divisor for fork in branch.forks)
            self.channels += forked or channels

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, in, H, W] -> [N, channels, H', W']`."""
        parts = [part for branch in self.branches for part in self._parts(x, branch)]
        return nn.op.concat(parts, dim=1)

    def _parts(self, x: nn.Tensor, branch: Branch) -> list[nn.Tensor]:
        x = _pooled(x, branch.pool)
        for shape in branch.convs:
            x = getattr(self, shape.name)(x)
        return [getattr(self, fork.name)(x) for fork in branch.forks] or [x]


def _pooled(x: nn.Tensor, pool: str) -> nn.Tensor:
    if pool == MAX:
        return max_pool2d(x, size=3, stride=2)
    return avg_pool2d(x, size=3, padding=1) if pool == MEAN else x


class Inception(nn.Module):  # type: ignore[misc]
    """The network: stem, mixed blocks, mean over the image, classifier."""

    def __init__(self, config: InceptionConfig) -> None:
        super().__init__()
        channels = 3
        for shape in (shape for row in STEM for shape in row):
            outputs = shape.channels // config.divisor
            setattr(self, shape.name, ConvNorm(channels, outputs, shape))
            channels = outputs
        for mixed in MIXED:
            block = MixedBlock(channels, mixed, config.divisor)
            setattr(self, mixed.name, block)
            channels = block.channels
        self.fc = nn.Linear(channels, config.classes)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, 3, H, W] -> [N, classes]`."""
        for row in STEM:
            for shape in row:
                x = getattr(self, shape.name)(x)
            x = max_pool2d(x, size=3, stride=2)
        for mixed in MIXED:
            x = getattr(self, mixed.name)(x)
        return self.fc(global_avg_pool(x))
