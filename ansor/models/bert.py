"""The encoder of BERT (Devlin et al., 2018) on hidden states that are embedded already.

Attribute names give the parameter names of the usual checkpoints ("layer.0.attention.self.query").
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.relax.frontend import nn

from ansor.models.attention import SelfAttention


@dataclass(frozen=True)
class BertConfig:
    """Shape of the encoder."""

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    intermediate: int = 3072
    tokens: int = 128
    epsilon: float = 1e-12  # of layer normalisation

    def network(self) -> nn.Module:
        """The network to be exported."""
        return BertEncoder(self)

    def input_of(self, batch: int) -> tuple[str, tuple[int, ...]]:
        """Name and shape of the input."""
        return "hidden", (batch, self.tokens, self.hidden)


BERT_BASE = BertConfig()


class _Output(nn.Module):  # type: ignore[misc]
    """Projection, shortcut, layer normalisation."""

    def __init__(self, inputs: int, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, config.hidden)
        self.LayerNorm = nn.LayerNorm(config.hidden, eps=config.epsilon)

    def forward(self, x: nn.Tensor, shortcut: nn.Tensor) -> nn.Tensor:
        return self.LayerNorm(self.dense(x) + shortcut)


class _Attention(nn.Module):  # type: ignore[misc]
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self = SelfAttention(config.hidden, config.heads)
        self.output = _Output(config.hidden, config)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        return self.output(self.self(x), x)


class _Intermediate(nn.Module):  # type: ignore[misc]
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden, config.intermediate)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        return nn.op.gelu(self.dense(x))


class _Layer(nn.Module):  # type: ignore[misc]
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = _Attention(config)
        self.intermediate = _Intermediate(config)
        self.output = _Output(config.intermediate, config)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        x = self.attention(x)
        return self.output(self.intermediate(x), x)


class BertEncoder(nn.Module):  # type: ignore[misc]
    """The layers, one after the other."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList([_Layer(config) for _ in range(config.layers)])

    def forward(self, hidden: nn.Tensor) -> nn.Tensor:
        """`[N, tokens, hidden] -> [N, tokens, hidden]`."""
        return self.layer(hidden)
