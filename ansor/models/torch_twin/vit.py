"""ViT in PyTorch."""

# mypy: allow-subclassing-any

from __future__ import annotations

import torch
from torch import nn

from ansor.models.torch_twin.attention import TorchSelfAttention
from ansor.models.vit import VitConfig


class _TorchAttention(TorchSelfAttention):
    """Self-attention and its projection."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__(hidden, heads)
        self.out_proj = nn.Linear(hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.out_proj(super().forward(x))
        return out


class _TorchLayer(nn.Module):
    def __init__(self, config: VitConfig) -> None:
        super().__init__()
        hidden, wide = config.hidden, config.intermediate
        self.ln_1 = nn.LayerNorm(hidden, eps=config.epsilon)
        self.self_attention = _TorchAttention(hidden, config.heads)
        self.ln_2 = nn.LayerNorm(hidden, eps=config.epsilon)
        up, down = nn.Linear(hidden, wide), nn.Linear(wide, hidden)
        self.mlp = nn.Sequential(up, nn.GELU(), nn.Dropout(), down)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.self_attention(self.ln_1(x)) + x
        out: torch.Tensor = self.mlp(self.ln_2(x)) + x
        return out


class _TorchEncoder(nn.Module):
    """Positions, then the layers, one after the other, and a last normalisation."""

    def __init__(self, config: VitConfig) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, config.patches + 1, config.hidden))
        self.layers = nn.Sequential(*[_TorchLayer(config) for _ in range(config.layers)])
        self.ln = nn.LayerNorm(config.hidden, eps=config.epsilon)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.ln(self.layers(x + self.pos_embedding))
        return out


class TorchVit(nn.Module):
    """Patches, class token, encoder, classifier on the class token."""

    def __init__(self, config: VitConfig) -> None:
        super().__init__()
        self.class_token = nn.Parameter(torch.empty(1, 1, config.hidden))
        self.conv_proj = nn.Conv2d(3, config.hidden, config.patch, config.patch)
        self.encoder = _TorchEncoder(config)
        self.heads = nn.Sequential(nn.Linear(config.hidden, config.classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, 3, H, W] -> [N, classes]`."""
        patches = self.conv_proj(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.class_token.expand(len(x), -1, -1), patches], dim=1)
        logits: torch.Tensor = self.heads(self.encoder(tokens)[:, 0])
        return logits
