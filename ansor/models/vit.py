"""ViT (Dosovitskiy et al., 2020): an encoder on patches of an image.

Attribute names are torchvision's where the structure is; query, key and value are three matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.relax.frontend import nn

from ansor.models.attention import SelfAttention
from ansor.models.layers import Identity, first_token


@dataclass(frozen=True)
class VitConfig:
    """Shape of the network."""

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    intermediate: int = 3072
    patch: int = 16  # height and width of a patch
    classes: int = 1000
    image: int = 224  # height and width of the input
    epsilon: float = 1e-6  # of layer normalisation

    @property
    def patches(self) -> int:
        """Number of patches of an image."""
        return (self.image // self.patch) ** 2

    def network(self) -> nn.Module:
        """The network to be exported."""
        return Vit(self)

    def input_of(self, batch: int) -> tuple[str, tuple[int, ...]]:
        """Name and shape of the input."""
        return "x", (batch, 3, self.image, self.image)


VIT_B_16 = VitConfig()


class _Attention(SelfAttention):
    """Self-attention and its projection."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__(hidden, heads)
        self.out_proj = nn.Linear(hidden, hidden)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        return self.out_proj(super().forward(x))


class _Layer(nn.Module):  # type: ignore[misc]
    def __init__(self, config: VitConfig) -> None:
        super().__init__()
        hidden, wide = config.hidden, config.intermediate
        self.ln_1 = nn.LayerNorm(hidden, eps=config.epsilon)
        self.self_attention = _Attention(hidden, config.heads)
        self.ln_2 = nn.LayerNorm(hidden, eps=config.epsilon)
        up, down = nn.Linear(hidden, wide), nn.Linear(wide, hidden)
        self.mlp = nn.ModuleList([up, nn.GELU(), Identity(), down])  # a dropout in between

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        x = self.self_attention(self.ln_1(x)) + x
        return self.mlp(self.ln_2(x)) + x


class _Encoder(nn.Module):  # type: ignore[misc]
    """Positions, then the layers, one after the other, and a last normalisation."""

    def __init__(self, config: VitConfig) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter((1, config.patches + 1, config.hidden))
        self.layers = nn.ModuleList([_Layer(config) for _ in range(config.layers)])
        self.ln = nn.LayerNorm(config.hidden, eps=config.epsilon)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        return self.ln(self.layers(x + self.pos_embedding))


class Vit(nn.Module):  # type: ignore[misc]
    """Patches, class token, encoder, classifier on the class token."""

    def __init__(self, config: VitConfig) -> None:
        super().__init__()
        self.class_token = nn.Parameter((1, 1, config.hidden))
        self.conv_proj = nn.Conv2D(3, config.hidden, config.patch, config.patch)
        self.encoder = _Encoder(config)
        self.heads = nn.ModuleList([nn.Linear(config.hidden, config.classes)])

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, 3, H, W] -> [N, classes]`."""
        return self.heads(first_token(self.encoder(self._tokens(x))))

    def _tokens(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, 3, H, W] -> [N, 1 + patches, hidden]`."""
        patches = self.conv_proj(x)
        batch, hidden, height, width = patches.shape
        listed = nn.op.reshape(patches, (batch, hidden, height * width))
        token = nn.op.broadcast_to(self.class_token, (batch, 1, hidden))
        return nn.op.concat([token, nn.op.permute_dims(listed, [0, 2, 1])], dim=1)
