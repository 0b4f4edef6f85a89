"""The generator of DCGAN (Radford et al., 2015): from a point to an image.

Attribute names give the parameter names of PyTorch's example ("main.0.weight").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tvm.relax.frontend import nn

from ansor.models.layers import BatchNorm, ConvTranspose2d


@dataclass(frozen=True)
class DcganConfig:
    """Shape of the generator."""

    latent: int = 100  # extent of the point
    width: int = 64  # channels of the last hidden layer; each layer before has twice as many
    doublings: int = 4  # of height and width, from 4×4

    def network(self) -> nn.Module:
        """The network to be exported."""
        return Generator(self)

    def input_of(self, batch: int) -> tuple[str, tuple[int, ...]]:
        """Name and shape of the input."""
        return "z", (batch, self.latent, 1, 1)


DCGAN = DcganConfig()


@dataclass(frozen=True)
class SpreadShape:
    """One transposed convolution; stride, padding and kernel are of both height and width."""

    in_channels: int
    out_channels: int
    stride: int
    padding: int
    kernel: int = 4


def spread_shapes(config: DcganConfig) -> Iterator[SpreadShape]:
    """All transposed convolutions in order: 1×1 to 4×4, then doublings."""
    channels = config.width << (config.doublings - 1)
    yield SpreadShape(config.latent, channels, stride=1, padding=0)
    for _ in range(config.doublings - 1):
        yield SpreadShape(channels, channels // 2, stride=2, padding=1)
        channels //= 2
    yield SpreadShape(channels, 3, stride=2, padding=1)


def _spread(shape: SpreadShape) -> ConvTranspose2d:
    per_channel = 1 if shape.stride == 1 else (shape.kernel // shape.stride) ** 2
    return ConvTranspose2d(
        shape.in_channels,
        shape.out_channels,
        shape.kernel,
        shape.stride,
        shape.padding,
        fan_in=shape.in_channels * per_channel,
    )


class _Tanh(nn.Module):  # type: ignore[misc]
    def forward(self, x: nn.Tensor) -> nn.Tensor:
        return nn.op.tanh(x)


class Generator(nn.Module):  # type: ignore[misc]
    """Transposed convolutions with batch normalisation and ReLU; tanh at the end."""

    def __init__(self, config: DcganConfig) -> None:
        super().__init__()
        *hidden, last = spread_shapes(config)
        layers: list[nn.Module] = []
        for shape in hidden:
            layers += [_spread(shape), BatchNorm(shape.out_channels), nn.ReLU()]
        self.main = nn.ModuleList([*layers, _spread(last), _Tanh()])

    def forward(self, z: nn.Tensor) -> nn.Tensor:
        """`[N, latent, 1, 1] -> [N, 3, image, image]` within [-1, 1]."""
        return self.main(z)
