"""Self-attention in PyTorch."""

# mypy: allow-subclassing-any

from __future__ import annotations

import torch
from torch import nn


class TorchSelfAttention(nn.Module):
    """Every token attends to all tokens; the projection of the result is left to the caller."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, tokens, hidden] -> [N, tokens, hidden]`, without a mask."""
        parts = (part(x) for part in (self.query, self.key, self.value))
        split = (p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in parts)
        return nn.functional.scaled_dot_product_attention(*split).transpose(1, 2).flatten(2)
