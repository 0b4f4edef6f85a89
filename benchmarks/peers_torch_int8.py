"""Products and convolutions of integers in PyTorch: the operators of its quantised networks.

oneDNN multiplies uint8 by int8. With a scale of 1 and a zero point of 0, its results in float32 are
the sums themselves, exact up to 2^24. Weights are packed before the clock starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch

from ansor.errors import ArgumentError
from ansor.frontend.importers.from_torch.capture import tensor_of
from ansor.workloads.workload import Array
from benchmarks.peers_torch import Form, Inputs, Layout, Maker, maker_of

_NO_EPILOGUE: tuple[Any, ...] = ("none", [], "")
_SCALE, _ZERO = 1.0, 0


def integer_form(
    op: str, arrays: Sequence[Array], channels_last: bool, shape: Sequence[int]
) -> Form:
    """The operator `op` on uint8 data and int8 weights; `shape` is its row in the suite's table.

    Raises:
        ArgumentError: an operator that PyTorch does not have for integers.
    """
    return maker_of(MAKERS, op)(Layout(channels_last), list(map(tensor_of, arrays)), shape)


def _linear(data: Any, weight: Any, finish: Callable[[Any], Any]) -> Form:
    """A product of data `[rows, depth]` and weight `[columns, depth]`."""
    packed = torch.ops.onednn.qlinear_prepack(weight.contiguous(), list(data.shape))
    scales, zeros = _of_columns(weight.shape[0])
    asked = (data, _SCALE, _ZERO, packed, scales, zeros, None, _SCALE, _ZERO, torch.float32)
    return Form(
        lambda: torch.ops.onednn.qlinear_pointwise(*asked, *_NO_EPILOGUE),
        lambda out: finish(_integers(out)),
    )


def _one_product(layout: Layout, inputs: Inputs, shape: Sequence[int]) -> Form:
    """A stack of one product; weights of a layer are the same for all rows."""
    data, weight = inputs
    if len(data) > 1:
        raise ArgumentError(
            "peers", "torch", "leave it out; PyTorch has no stack of integer products"
        )
    return _linear(data[0], weight[0].T, lambda out: out[None])


def _conv(
    layout: Layout, inputs: Inputs, shape: Sequence[int], groups: int = 1, dilation: int = 1
) -> Form:
    data = layout.data(inputs[0])
    rank = data.ndim - 2
    return _packed_conv(data, layout.weight(inputs[1]), shape[rank + 3 :], groups, dilation)


def _depthwise(layout: Layout, inputs: Inputs, shape: Sequence[int]) -> Form:
    data, weight = layout.data(inputs[0]), layout(inputs[1].movedim(-1, 0).unsqueeze(1))
    return _packed_conv(data, weight, shape[4:], data.shape[1], 1)


def _packed_conv(data: Any, weight: Any, steps: Sequence[int], groups: int, dilation: int) -> Form:
    """A convolution; `steps` begins with stride and padding."""
    stride, padding, apart = ([n] * (data.ndim - 2) for n in (*steps[:2], dilation))
    scales, zeros = _of_columns(weight.shape[0])
    place = stride, padding, apart, groups
    packed = torch.ops.onednn.qconv_prepack(weight, scales, _SCALE, _ZERO, *place, list(data.shape))
    asked = (data, _SCALE, _ZERO, packed, scales, zeros, None, *place)
    rest = (_SCALE, _ZERO, torch.float32, *_NO_EPILOGUE)
    return Form(
        lambda: torch.ops.onednn.qconv_pointwise(*asked, *rest),
        lambda out: _integers(out).movedim(1, -1),
    )


def _of_columns(count: int) -> tuple[Any, Any]:
    """Scales and zero points."""
    return torch.full((count,), _SCALE), torch.full((count,), _ZERO)


def _integers(out: Any) -> Any:
    return out.to(torch.int32)


MAKERS: Mapping[str, Maker] = MappingProxyType(
    {
        "C1D": _conv,
        "C2D": _conv,
        "C3D": _conv,
        "GRP": lambda layout, inputs, s: _conv(layout, inputs, s, groups=s[-1]),
        "DIL": lambda layout, inputs, s: _conv(layout, inputs, s, dilation=s[-1]),
        "DEP": _depthwise,
        "GMM": _one_product,
        "batch_matmul": _one_product,
        "matmul": lambda _, inputs, __: _linear(inputs[0], inputs[1].T, lambda out: out),
        "dense": lambda _, inputs, __: _linear(inputs[0], inputs[1], lambda out: out),
    }
)
