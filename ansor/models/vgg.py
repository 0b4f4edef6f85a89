"""VGG (Simonyan and Zisserman, 2014) without batch normalisation.

Attribute names give torchvision's parameter names ("features.28.weight").
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.relax.frontend import nn

from ansor.models.layers import Identity, MaxPool2d


@dataclass(frozen=True)
class VggConfig:
    """Shape of the network: for each stage its channels and its number of convolutions."""

    stages: tuple[tuple[int, int], ...] = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
    hidden: int = 4096  # of the classifier
    classes: int = 1000
    image: int = 224  # height and width of the input

    @property
    def flat(self) -> int:
        """Values that the classifier is given."""
        return self.stages[-1][0] * (self.image >> len(self.stages)) ** 2

    def network(self) -> nn.Module:
        """The network to be exported."""
        return Vgg(self)

    def input_of(self, batch: int) -> tuple[str, tuple[int, ...]]:
        """Name and shape of the input."""
        return "x", (batch, 3, self.image, self.image)


VGG16 = VggConfig()


class Vgg(nn.Module):  # type: ignore[misc]
    """The network: stages of 3×3 convolutions, which a pooling ends, and three linear layers."""

    def __init__(self, config: VggConfig) -> None:
        super().__init__()
        channels, layers = 3, []
        for out, count in config.stages:
            for _ in range(count):
                layers += [nn.Conv2D(channels, out, 3, padding=1), nn.ReLU()]
                channels = out
            layers.append(MaxPool2d(2, stride=2))
        self.features = nn.ModuleList(layers)
        first, second = (config.flat, config.hidden), (config.hidden, config.hidden)
        parts = [part for sizes in (first, second) for part in _hidden(*sizes)]
        self.classifier = nn.ModuleList([*parts, nn.Linear(config.hidden, config.classes)])

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, 3, H, W] -> [N, classes]`."""
        maps = self.features(x)
        batch, channels, height, width = maps.shape
        return self.classifier(nn.op.reshape(maps, (batch, channels * height * width)))


def _hidden(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Linear(inputs, outputs), nn.ReLU(), Identity()]  # then comes a dropout
