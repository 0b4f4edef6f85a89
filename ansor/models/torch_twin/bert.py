"""BERT's encoder in PyTorch."""

# mypy: allow-subclassing-any

from __future__ import annotations

import torch
from torch import nn

from ansor.models.bert import BertConfig
from ansor.models.torch_twin.attention import TorchSelfAttention


class _TorchOutput(nn.Module):
    def __init__(self, inputs: int, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, config.hidden)
        self.LayerNorm = nn.LayerNorm(config.hidden, eps=config.epsilon)

    def forward(self, x: torch.Tensor, shortcut: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.LayerNorm(self.dense(x) + shortcut)
        return out


class _TorchAttention(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self = TorchSelfAttention(config.hidden, config.heads)
        self.output = _TorchOutput(config.hidden, config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.output(self.self(x), x)
        return out


class _TorchIntermediate(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden, config.intermediate)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.gelu(self.dense(x))


class _TorchLayer(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = _TorchAttention(config)
        self.intermediate = _TorchIntermediate(config)
        self.output = _TorchOutput(config.intermediate, config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.attention(x)
        out: torch.Tensor = self.output(self.intermediate(x), x)
        return out


class TorchBert(nn.Module):
    """The encoder's layers, one after the other."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = nn.Sequential(*[_TorchLayer(config) for _ in range(config.layers)])

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """`[N, tokens, hidden] -> [N, tokens, hidden]`."""
        out: torch.Tensor = self.layer(hidden)
        return out
