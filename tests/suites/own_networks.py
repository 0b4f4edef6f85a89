"""Networks that no package gives: built of PyTorch's layers as their papers describe them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn


def image(channels: int, size: int) -> torch.Tensor:
    """`[1, channels, size, size]`, normal numbers."""
    return torch.randn(1, channels, size, size)


def tokens(vocabulary: int, length: int, rows: int = 1) -> torch.Tensor:
    """`[rows, length] int64`, indices of words."""
    return torch.randint(0, vocabulary, (rows, length))


class RecurrentClassifier(nn.Module):
    """Embedding, a recurrent layer of both directions, and a linear layer on its last states."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.layer = kind(32, 48, 2, batch_first=True, bidirectional=True, dropout=0.3)
        self.head = nn.Linear(2 * 48, 5)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """`[rows, 5]` logits."""
        _, last = self.layer(self.embedding(words))
        hidden = last[0] if isinstance(last, tuple) else last
        return self.head(torch.cat([hidden[-2], hidden[-1]], dim=-1))  # type: ignore[no-any-return]


def _double(inputs: int, outputs: int) -> nn.Sequential:
    """Two convolutions with batch norm and ReLU."""
    layers: list[nn.Module] = []
    for size in (inputs, outputs):
        layers += [nn.Conv2d(size, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """An encoder and a decoder with skip connections; one of the ways up is bilinear."""

    def __init__(self, sizes: Sequence[int] = (8, 16, 32)) -> None:
        super().__init__()
        first, second, third = sizes
        self.down = nn.ModuleList([_double(3, first), _double(first, second)])
        self.bottom = _double(second, third)
        self.up_second = nn.ConvTranspose2d(third, second, 2, stride=2)
        self.merge_second = _double(2 * second, second)
        self.up_first = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.merge_first = _double(first + second, first)
        self.head = nn.Conv2d(first, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[1, 2, H, W]` logits."""
        first = self.down[0](x)
        second = self.down[1](nn.functional.max_pool2d(first, 2))
        third = self.bottom(nn.functional.max_pool2d(second, 2))
        up = self.merge_second(torch.cat([second, self.up_second(third)], dim=1))
        up = self.merge_first(torch.cat([first, self.up_first(up)], dim=1))
        return self.head(up)  # type: ignore[no-any-return]


class YoloHead(nn.Module):
    """A decoupled head over three scales, with SiLU: a softmax over distances, and classes."""

    def __init__(
        self, sizes: Sequence[int] = (32, 64, 128), classes: int = 6, bins: int = 8
    ) -> None:
        super().__init__()
        self.bins, self.classes = bins, classes
        self.boxes = nn.ModuleList([self._branch(size, 4 * bins) for size in sizes])
        self.scores = nn.ModuleList([self._branch(size, classes) for size in sizes])
        self.register_buffer("distances", torch.arange(bins, dtype=torch.float32))

    @staticmethod
    def _branch(inputs: int, outputs: int) -> nn.Sequential:
        norm = nn.BatchNorm2d(inputs)
        return nn.Sequential(
            nn.Conv2d(inputs, inputs, 3, padding=1, bias=False), norm, nn.SiLU(),
            nn.Conv2d(inputs, outputs, 1),
        )  # fmt: skip

    def forward(self, *scales: torch.Tensor) -> torch.Tensor:
        """`[1, 4 + classes, points]`: boxes as left, top, right, bottom, and probabilities."""
        found = [self._scale(*of) for of in zip(scales, self.boxes, self.scores, strict=True)]
        return torch.cat(found, dim=-1)

    def _scale(self, x: torch.Tensor, boxes: nn.Module, scores: nn.Module) -> torch.Tensor:
        distances = boxes(x).flatten(2).view(x.shape[0], 4, self.bins, -1).softmax(2)
        sides = (distances * self.distances.view(1, 1, -1, 1)).sum(2)
        left, top, right, bottom = sides.unbind(1)
        points = self._points(x)
        first = points - torch.stack([left, top], 1)
        last = points + torch.stack([right, bottom], 1)
        return torch.cat([first, last, scores(x).flatten(2).sigmoid()], 1)

    @staticmethod
    def _points(x: torch.Tensor) -> torch.Tensor:
        rows, columns = (torch.arange(extent) + 0.5 for extent in x.shape[-2:])
        y, across = torch.meshgrid(rows, columns, indexing="ij")
        return torch.stack([across, y]).view(1, 2, -1)


class CausalEncoder(nn.Module):
    """`nn.TransformerEncoder` with norms first, in which no position sees a later one."""

    def __init__(self, size: int, length: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(size, 4, 2 * size, activation="gelu", norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[length, rows, size]`."""
        return self.layers(x, mask=self.mask, is_causal=True)  # type: ignore[no-any-return]
