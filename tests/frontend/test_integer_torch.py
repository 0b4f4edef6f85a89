"""Quantised graphs of PyTorch (PT2E): the same integer products as from ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm.target import Target

from ansor.errors import UnsupportedError
from ansor.frontend import compile_model, import_model, optimize
from ansor.frontend.distinct_functions import tir_calls
from ansor.frontend.passes.integer.form import integer_form
from tests.frontend.test_integer_products import products

torch = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization.fx._decomposed")  # registers the operators

OPS = torch.ops.quantized_decomposed
UINT8 = (0, 255, torch.uint8)
INT8 = (-127, 127, torch.int8)


def requantised(x: Any, scale: float, zero: int, bounds: Any = UINT8) -> Any:
    codes = OPS.quantize_per_tensor(x, scale, zero, *bounds)
    return OPS.dequantize_per_tensor(codes, scale, zero, *bounds)


class Weights(torch.nn.Module):  # type: ignore[misc]
    """Weights of int8 with a scale for each channel."""

    def __init__(self, *shape: int, axis: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(sum(shape))
        codes = torch.randint(-127, 128, shape, generator=generator, dtype=torch.int8)
        self.register_buffer("codes", codes)
        self.register_buffer("scales", torch.rand(shape[axis], generator=generator) * 0.02 + 0.001)
        self.register_buffer("zeros", torch.zeros(shape[axis], dtype=torch.int64))
        self.axis = axis

    def forward(self) -> Any:
        return OPS.dequantize_per_channel(self.codes, self.scales, self.zeros, self.axis, *INT8)


class Convolutions(torch.nn.Module):  # type: ignore[misc]
    """A residual block and a classifier, quantised as `convert_pt2e` leaves them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Weights(8, 3, 3, 3), Weights(8, 8, 3, 3)
        self.depthwise, self.last = Weights(8, 1, 3, 3), Weights(5, 8)
        self.bias = torch.nn.Parameter(torch.linspace(-1, 1, 8))

    def forward(self, x: Any) -> Any:
        conv = torch.nn.functional.conv2d
        x = requantised(x, 0.02, 120)
        a = requantised(conv(x, self.first(), self.bias, padding=1).relu(), 0.05, 0)
        b = requantised(
            conv(a, self.second(), self.bias, padding=1) + a, 0.1, 60, (0, 127, torch.uint8)
        )
        c = requantised(conv(b, self.depthwise(), None, padding=1, groups=8), 0.05, 100)
        pooled = requantised(torch.nn.functional.max_pool2d(c, 2).mean((2, 3)), 0.02, 100)
        return torch.nn.functional.linear(pooled, self.last())


class Dynamic(torch.nn.Module):  # type: ignore[misc]
    """A linear layer whose activations are quantised by their own range."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = Weights(6, 16)

    def forward(self, x: Any) -> Any:
        scale, zero = OPS.choose_qparams(x, 0, 255, 1e-5, torch.uint8)
        codes = OPS.quantize_per_tensor(x, scale, zero, *UINT8)
        x = OPS.dequantize_per_tensor(codes, scale, zero, *UINT8)
        return torch.nn.functional.linear(x, self.weights())


CASES = {"convolutions": (Convolutions, (1, 3, 8, 8), 4), "dynamic": (Dynamic, (2, 3, 16), 1)}


def inputs(shape: tuple[int, ...]) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("name", CASES)
def test_products_are_integers_and_results_those_of_torch(name: str, target: Target) -> None:
    module, shape, count = CASES[name]
    model, x = module().eval(), inputs(shape)
    with torch.no_grad():
        expected = model(x).numpy()
    imported = import_model(model, (x,))
    found = products(integer_form(imported.mod))
    assert [str(call.ty.dtype) for call in found] == ["int32"] * count
    result = compile_model(optimize(imported.mod, target), target)(x.numpy())
    assert np.abs(result - expected).max() <= 0.01 * np.abs(expected).max()


def test_every_convolution_is_one_function_and_stored_in_eight_bits(target: Target) -> None:
    mod = optimize(import_model(Convolutions().eval(), (inputs((1, 3, 8, 8)),)).mod, target)
    calls = [call for call in tir_calls(mod) if "conv2d" in str(call.args[0].name_hint)]
    assert [str(call.ty.dtype) for call in calls] == ["uint8"] * 3


@pytest.mark.parametrize("scale", [0.0, float("nan")])
def test_scale_that_is_not_positive_and_finite(scale: float) -> None:
    class Wrong(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return OPS.dequantize_per_tensor(x, scale, 0, *UINT8)

    x = torch.zeros(3, dtype=torch.uint8)
    with pytest.raises(UnsupportedError, match=r"dequantize_per_tensor.*scale is .*finite"):
        import_model(Wrong(), (x,))
