"""Layers that `tvm.relax.frontend.nn` lacks: batch normalisation (eval mode) and pooling.

Activations are NCHW float32; `optimize` makes them channels-last later.
"""

from __future__ import annotations

from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn.core import wrap_nested

EPSILON = 1e-5  # of batch normalisation; PyTorch's default


class BatchNorm2d(nn.Module):  # type: ignore[misc]
    """Batch normalisation with stored statistics, `[N, C, H, W] -> [N, C, H, W]`."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter((channels,))
        self.bias = nn.Parameter((channels,))
        self.running_mean = nn.Parameter((channels,))
        self.running_var = nn.Parameter((channels,))

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """Normalises over the channel axis (1)."""
        operands = (x, self.weight, self.bias, self.running_mean, self.running_var)
        normalised = relax.op.nn.batch_norm(
            *(operand._expr for operand in operands), axis=1, epsilon=EPSILON, training=False
        )
        return wrap_nested(relax.TupleGetItem(normalised, 0), "batch_norm")


def max_pool2d(x: nn.Tensor, size: int, stride: int, padding: int) -> nn.Tensor:
    """`[N, C, H, W]`, square windows, the same padding on every side."""
    pooled = relax.op.nn.max_pool2d(x._expr, (size, size), (stride, stride), (padding, padding))
    return wrap_nested(pooled, "max_pool2d")


def global_avg_pool2d(x: nn.Tensor) -> nn.Tensor:
    """Mean over the spatial axes, `[N, C, H, W] -> [N, C]`."""
    return wrap_nested(relax.op.mean(x._expr, axis=[2, 3]), "global_avg_pool2d")


class Identity(nn.Module):  # type: ignore[misc]
    """Nothing, where PyTorch has a dropout: it keeps the numbers of the layers after it."""

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """Returns its input."""
        return x


def relu6(x: nn.Tensor) -> nn.Tensor:
    """Values cut to [0, 6]."""
    return wrap_nested(relax.op.clip(x._expr, 0, 6), "relu6")
