"""Layers that `tvm.relax.frontend.nn` lacks: batch normalisation (eval mode), pooling and others.

Activations are float32, channels first; `optimize` makes those of 2-D convolutions channels-last.
"""

from __future__ import annotations

from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn.core import wrap_nested

FAN_IN = "fan_in"  # attribute of parameters whose fan-in their shape does not tell


class BatchNorm(nn.Module):  # type: ignore[misc]
    """Batch normalisation with stored statistics, `[N, C, ...] -> [N, C, ...]`."""

    def __init__(self, channels: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter((channels,))
        self.bias = nn.Parameter((channels,))
        self.running_mean = nn.Parameter((channels,))
        self.running_var = nn.Parameter((channels,))
        self.epsilon = epsilon

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """Normalises over the channel axis (1)."""
        operands = (x, self.weight, self.bias, self.running_mean, self.running_var)
        normalised = relax.op.nn.batch_norm(
            *(operand._expr for operand in operands), axis=1, epsilon=self.epsilon, training=False
        )
        return wrap_nested(relax.TupleGetItem(normalised, 0), "batch_norm")


class ConvTranspose2d(nn.Module):  # type: ignore[misc]
    """Transposed convolution without bias, `[N, in, H, W] -> [N, out, H', W']`.

    `H' = (H - 1) * stride - 2 * padding + kernel`. The kernel is `[in, out, kernel, kernel]`;
    `fan_in` is the number of products that one output sums, for the scale of random weights.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int, padding: int, fan_in: int
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter((inputs, outputs, kernel, kernel))
        self.weight.attrs[FAN_IN] = fan_in
        self.stride, self.padding = stride, padding

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """Every input value is spread over a window of outputs."""
        spread = relax.op.nn.conv2d_transpose(
            x._expr, self.weight._expr, (self.stride,) * 2, (self.padding,) * 2
        )
        return wrap_nested(spread, "conv2d_transpose")


class MaxPool2d(nn.Module):  # type: ignore[misc]
    """`max_pool2d` without padding, as a layer with a number."""

    def __init__(self, size: int, stride: int, ceil: bool = False) -> None:
        super().__init__()
        self.size, self.stride, self.ceil = size, stride, ceil

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, C, H, W]`."""
        return max_pool2d(x, self.size, self.stride, 0, self.ceil)


def max_pool2d(
    x: nn.Tensor, size: int, stride: int, padding: int = 0, ceil: bool = False
) -> nn.Tensor:
    """`[N, C, H, W]`, square windows, the same padding on every side.

    With `ceil`, windows may stand out at the bottom and on the right.
    """
    pooled = relax.op.nn.max_pool2d(
        x._expr, (size, size), (stride, stride), (padding, padding), ceil_mode=ceil
    )
    return wrap_nested(pooled, "max_pool2d")


def avg_pool2d(x: nn.Tensor, size: int, padding: int) -> nn.Tensor:
    """`[N, C, H, W]`, stride one; zeros of the padding count."""
    pooled = relax.op.nn.avg_pool2d(
        x._expr, (size, size), (1, 1), (padding, padding), count_include_pad=True
    )
    return wrap_nested(pooled, "avg_pool2d")


def global_avg_pool(x: nn.Tensor) -> nn.Tensor:
    """Mean over the spatial axes, `[N, C, ...] -> [N, C]`."""
    spatial = list(range(2, len(x.shape)))
    return wrap_nested(relax.op.mean(x._expr, axis=spatial), "global_avg_pool")


def first_token(x: nn.Tensor) -> nn.Tensor:
    """`[N, tokens, hidden] -> [N, hidden]`."""
    first = wrap_nested(relax.op.strided_slice(x._expr, [1], [0], [1]), "first_token")
    return nn.op.reshape(first, (x.shape[0], x.shape[2]))


class Identity(nn.Module):  # type: ignore[misc]
    """Nothing, where PyTorch has a dropout: it keeps the numbers of the layers after it."""

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """Returns its input."""
        return x


def relu6(x: nn.Tensor) -> nn.Tensor:
    """Values cut to [0, 6]."""
    return wrap_nested(relax.op.clip(x._expr, 0, 6), "relu6")
