"""Self-attention with several heads (Vaswani et al., 2017), of operators that can be fused."""

from __future__ import annotations

import math

from tvm.relax.frontend import nn


class SelfAttention(nn.Module):  # type: ignore[misc]
    """Every token attends to all tokens; the projection of the result is left to the caller."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.heads, self.width = heads, hidden // heads

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, tokens, hidden] -> [N, tokens, hidden]`, without a mask."""
        query, key, value = (self._split(part(x)) for part in (self.query, self.key, self.value))
        scores = nn.op.matmul(query, nn.op.permute_dims(key, [0, 1, 3, 2]))
        weights = nn.op.softmax(scores * (1 / math.sqrt(self.width)), axis=-1)
        mixed = nn.op.permute_dims(nn.op.matmul(weights, value), [0, 2, 1, 3])
        return nn.op.reshape(mixed, x.shape)

    def _split(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, tokens, hidden] -> [N, heads, tokens, width]`."""
        batch, tokens, _ = x.shape
        parted = nn.op.reshape(x, (batch, tokens, self.heads, self.width))
        return nn.op.permute_dims(parted, [0, 2, 1, 3])
