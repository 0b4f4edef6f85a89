"""DCGAN's generator in PyTorch."""

# mypy: allow-subclassing-any

from __future__ import annotations

import torch
from torch import nn

from ansor.models.dcgan import DcganConfig, SpreadShape, spread_shapes
from ansor.models.torch_twin.layers import norm


def _spread(shape: SpreadShape) -> nn.ConvTranspose2d:
    channels = (shape.in_channels, shape.out_channels)
    return nn.ConvTranspose2d(*channels, shape.kernel, shape.stride, shape.padding, bias=False)


class TorchGenerator(nn.Module):
    """Transposed convolutions with batch normalisation and ReLU; tanh at the end."""

    def __init__(self, config: DcganConfig) -> None:
        super().__init__()
        *hidden, last = spread_shapes(config)
        layers: list[nn.Module] = []
        for shape in hidden:
            layers += [_spread(shape), norm(shape.out_channels), nn.ReLU()]
        self.main = nn.Sequential(*layers, _spread(last), nn.Tanh())

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """`[N, latent, 1, 1] -> [N, 3, image, image]` within [-1, 1]."""
        image: torch.Tensor = self.main(z)
        return image
