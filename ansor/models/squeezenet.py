"""SqueezeNet 1.1 (Iandola et al., 2016) as PyTorch users know it.

Attribute names give torchvision's parameter names ("features.3.expand3x3.weight").
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.relax.frontend import nn

from ansor.models.layers import Identity, MaxPool2d, global_avg_pool


@dataclass(frozen=True)
class SqueezeNetConfig:
    """Shape of the network: for each stage, which a pooling begins, its fire modules.

    A fire module has as many squeezed channels as the first number says, and of either kind of
    expanded ones as the second says.
    """

    stages: tuple[tuple[tuple[int, int], ...], ...] = (
        ((16, 64), (16, 64)),
        ((32, 128), (32, 128)),
        ((48, 192), (48, 192), (64, 256), (64, 256)),
    )
    stem: int = 64  # channels of the first convolution
    classes: int = 1000
    image: int = 224  # height and width of the input

    def network(self) -> nn.Module:
        """The network to be exported."""
        return SqueezeNet(self)

    def input_of(self, batch: int) -> tuple[str, tuple[int, ...]]:
        """Name and shape of the input."""
        return "x", (batch, 3, self.image, self.image)


SQUEEZENET1_1 = SqueezeNetConfig()


class Fire(nn.Module):  # type: ignore[misc]
    """1×1 down; then 1×1 and 3×3 up, side by side."""

    def __init__(self, inputs: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2D(inputs, squeezed, 1)
        self.expand1x1 = nn.Conv2D(squeezed, expanded, 1)
        self.expand3x3 = nn.Conv2D(squeezed, expanded, 3, padding=1)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, in, H, W] -> [N, 2 * expanded, H, W]`."""
        x = nn.op.relu(self.squeeze(x))
        parts = [nn.op.relu(self.expand1x1(x)), nn.op.relu(self.expand3x3(x))]
        return nn.op.concat(parts, dim=1)


class SqueezeNet(nn.Module):  # type: ignore[misc]
    """The network: stem, stages, convolution to the classes, mean over the image."""

    def __init__(self, config: SqueezeNetConfig) -> None:
        super().__init__()
        channels = config.stem
        layers: list[nn.Module] = [nn.Conv2D(3, channels, 3, stride=2), nn.ReLU()]
        for stage in config.stages:
            layers.append(MaxPool2d(3, stride=2, ceil=True))
            for squeezed, expanded in stage:
                layers.append(Fire(channels, squeezed, expanded))
                channels = 2 * expanded
        self.features = nn.ModuleList(layers)
        last = nn.Conv2D(channels, config.classes, 1)
        self.classifier = nn.ModuleList([Identity(), last, nn.ReLU()])  # dropout comes first

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, 3, H, W] -> [N, classes]`."""
        return global_avg_pool(self.classifier(self.features(x)))
