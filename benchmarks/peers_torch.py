"""The suite's operators in PyTorch: the same inputs, laid out before the clock starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch.nn import functional

from ansor.errors import ArgumentError
from ansor.frontend.importers.from_torch.capture import tensor_of
from ansor.workloads.suite import SHAPES
from ansor.workloads.workload import Array

_CONVOLUTIONS = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}


def _same(out: Any) -> Any:
    return out


@dataclass(frozen=True)
class Form:
    """An operator in PyTorch: the timed function, and the conversion of its output."""

    call: Callable[[], Any]
    finish: Callable[[Any], Any] = _same


@dataclass(frozen=True)
class Layout:
    """How tensors lie in memory: channels last, or as PyTorch's own order has it."""

    channels_last: bool

    def __call__(self, tensor: Any) -> Any:
        """A copy of images or weights, channels second, in the requested memory format."""
        formats = {4: torch.channels_last, 5: torch.channels_last_3d}
        last = self.channels_last and tensor.ndim in formats
        chosen = formats[tensor.ndim] if last else torch.contiguous_format
        return tensor.contiguous(memory_format=chosen)

    def data(self, x: Any) -> Any:
        """`[N, *space, C]` as PyTorch has images."""
        return self(x.movedim(-1, 1))

    def weight(self, w: Any) -> Any:
        """`[*kernel, C, F]` as PyTorch has filters."""
        return self(w.movedim((-1, -2), (0, 1)))


def _channels_last(out: Any) -> Any:
    return out.movedim(1, -1)


Inputs = Sequence[Any]


def _conv(
    layout: Layout, inputs: Inputs, shape: Sequence[int], groups: int = 1, dilation: int = 1
) -> Form:
    x, w = layout.data(inputs[0]), layout.weight(inputs[1])
    rank = x.ndim - 2
    stride, padding = shape[rank + 3 : rank + 5]
    run = _CONVOLUTIONS[rank]
    return Form(lambda: run(x, w, None, stride, padding, dilation, groups), _channels_last)


def _conv_bn_relu(layout: Layout, inputs: Inputs, shape: Sequence[int]) -> Form:
    x, w = layout.data(inputs[0]), layout.weight(inputs[1])
    bias, scale, offset = inputs[2:]
    mean, variance = torch.zeros_like(bias), torch.ones_like(bias)
    stride, padding = shape[5:7]

    def call() -> Any:
        conv = functional.conv2d(x, w, bias, stride, padding)
        moved = functional.batch_norm(conv, mean, variance, scale, offset, eps=0.0)
        return functional.relu_(moved)

    return Form(call, _channels_last)


def _depthwise(layout: Layout, inputs: Inputs, shape: Sequence[int]) -> Form:
    x, w = layout.data(inputs[0]), layout(inputs[1].movedim(-1, 0).unsqueeze(1))
    stride, padding = shape[4:6]
    return Form(
        lambda: functional.conv2d(x, w, None, stride, padding, 1, x.shape[1]), _channels_last
    )


def _transposed(layout: Layout, inputs: Inputs, shape: Sequence[int]) -> Form:
    x, w = layout.data(inputs[0]), layout(inputs[1].permute(2, 3, 0, 1))
    stride, padding = shape[5:7]
    return Form(lambda: functional.conv_transpose2d(x, w, None, stride, padding), _channels_last)


def _capsule(layout: Layout, inputs: Inputs, shape: Sequence[int]) -> Form:
    """One convolution: rows of the matrices as images, columns as channels."""
    data, weight = inputs
    n, height, width, size, _, channels = data.shape
    kernel, filters = weight.shape[0], weight.shape[-1]
    flat = data.permute(0, 3, 4, 5, 1, 2).reshape(n * size, size * channels, height, width)
    filter_shape = (size * filters, size * channels, kernel, kernel)
    x, w = layout(flat), layout(weight.permute(3, 5, 2, 4, 0, 1).reshape(filter_shape))
    stride, padding = shape[5:7]

    def finish(out: Any) -> Any:
        apart = out.reshape(n, size, size, filters, *out.shape[2:])
        return apart.permute(0, 4, 5, 1, 2, 3)

    return Form(lambda: functional.conv2d(x, w, None, stride, padding), finish)


def _scores(softmax: bool, inputs: Inputs) -> Form:
    q, k = inputs

    def call() -> Any:
        found = torch.matmul(q.permute(0, 2, 1, 3), k.permute(0, 2, 3, 1))
        return torch.softmax(found, dim=-1) if softmax else found

    return Form(call)


def _product(inputs: Inputs, turned: str = "") -> Form:
    a, b = inputs
    left = a.transpose(-1, -2) if turned == "A" else a
    right = b.transpose(-1, -2) if turned == "B" else b
    return Form(lambda: torch.matmul(left, right))


def _conv_nchw(layout: Layout, inputs: Inputs, stride: int, padding: int) -> Form:
    x, w = (layout(tensor) for tensor in inputs)
    return Form(lambda: functional.conv2d(x, w, None, stride, padding))


Maker = Callable[[Layout, Inputs, Sequence[int]], Form]

CONVOLUTIONS: Mapping[str, Maker] = MappingProxyType(
    {
        "C2D": _conv,
        "C3D": _conv,
        "GRP": lambda layout, inputs, s: _conv(layout, inputs, s, groups=s[-1]),
        "DIL": lambda layout, inputs, s: _conv(layout, inputs, s, dilation=s[-1]),
        "DEP": _depthwise,
        "T2D": _transposed,
        "CAP": _capsule,
        "CBR": _conv_bn_relu,
        "OPE.6": lambda layout, inputs, _: _conv_nchw(layout, inputs, 4, 0),
        "OPE.7": lambda layout, inputs, _: _conv_nchw(layout, inputs, 1, 2),
    }
)
OTHERS: Mapping[str, Maker] = MappingProxyType(
    {
        "C1D": _conv,
        "GMM": lambda _, inputs, __: _product(inputs),
        "NRM": lambda _, inputs, __: Form(lambda: torch.linalg.vector_norm(inputs[0], dim=(1, 2))),
        "SFM": lambda _, inputs, __: Form(lambda: torch.softmax(inputs[0], dim=1)),
        "TBG": lambda _, inputs, __: _scores(False, inputs),
        "TBS": lambda _, inputs, __: _scores(True, inputs),
        "OPE.0": lambda _, inputs, __: _product(inputs),
        "OPE.1": lambda _, inputs, __: _product(inputs),
        "OPE.2": lambda _, inputs, __: _product(inputs),
        "OPE.3": lambda _, inputs, __: _product(inputs),
        "OPE.4": lambda _, inputs, __: _product(inputs, "A"),
        "OPE.5": lambda _, inputs, __: _product(inputs, "B"),
        "matmul": lambda _, inputs, __: _product(inputs),
        "batch_matmul": lambda _, inputs, __: _product(inputs),
        "dense": lambda _, inputs, __: _product(inputs, "B"),
    }
)


def form(
    op: str,
    arrays: Sequence[Array],
    channels_last: bool,
    shape: Sequence[int],
    device: str = "cpu",
) -> Form:
    """The operator `op` on `arrays`, on a device; `shape` is its row in the suite's table.

    Raises:
        ArgumentError: an operator outside the suite, for which there is no PyTorch form.
    """
    maker = maker_of({**CONVOLUTIONS, **OTHERS}, op)
    tensors = [tensor_of(array).to(device) for array in arrays]
    return maker(Layout(channels_last), tensors, shape)


def maker_of(makers: Mapping[str, Maker], op: str) -> Maker:
    """The maker of an operator, or of its family.

    Raises:
        ArgumentError: there is none.
    """
    family = op.partition(".")[0].partition(":")[0]
    maker = makers.get(op) or makers.get(family)
    if maker is None:
        raise ArgumentError("peers", "torch", f"leave it out; {op} has no PyTorch form")
    return maker


def shape_of(op: str) -> Sequence[int]:
    """A member's row in the suite's table; nothing for another operator."""
    family, _, index = op.partition(".")
    return SHAPES[family][int(index)] if family in SHAPES else ()
