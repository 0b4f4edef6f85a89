"""Recurrent layers of PyTorch: all that their constructors offer, against PyTorch itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from tvm.target import Target

from ansor.errors import UnsupportedError
from ansor.frontend import compile_model, extract_functions, import_model, optimize

LAYERS: dict[str, tuple[type[nn.Module], dict[str, Any]]] = {
    "lstm": (nn.LSTM, {"num_layers": 2, "batch_first": True}),
    "lstm, both directions": (nn.LSTM, {"num_layers": 2, "bidirectional": True}),
    "lstm, no biases": (nn.LSTM, {"bias": False}),
    "lstm, projected": (nn.LSTM, {"proj_size": 3, "num_layers": 2, "bidirectional": True}),
    "lstm, projected, no biases": (nn.LSTM, {"proj_size": 3, "bias": False}),
    "lstm, dropout": (nn.LSTM, {"num_layers": 2, "dropout": 0.5}),
    "gru": (nn.GRU, {"num_layers": 2, "batch_first": True}),
    "gru, both directions": (nn.GRU, {"num_layers": 2, "bidirectional": True}),
    "gru, no biases": (nn.GRU, {"bias": False}),
    "rnn": (nn.RNN, {"num_layers": 2, "batch_first": True}),
    "rnn, relu": (nn.RNN, {"nonlinearity": "relu", "bidirectional": True}),
    "rnn, no biases": (nn.RNN, {"bias": False}),
}
STEPS, ROWS, SIZE, UNITS = 5, 3, 6, 8


def layer(name: str) -> nn.Module:
    torch.manual_seed(0)
    kind, arguments = LAYERS[name]
    return kind(SIZE, UNITS, **arguments).eval()


def states(module: Any, *rows: int) -> Any:
    """First states, far from zero."""
    count = module.num_layers * (2 if module.bidirectional else 1)
    hidden = torch.randn(count, *rows, module.proj_size or UNITS)
    return (hidden, torch.randn(count, *rows, UNITS)) if module.mode == "LSTM" else hidden


class Flat(nn.Module):
    """A recurrent layer whose results lie in a row."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any, *states: Any) -> Any:
        given = states if len(states) != 1 else states[0]
        output, last = self.inner(x, given) if states else self.inner(x)
        return (output, *last) if isinstance(last, tuple) else (output, last)


def check(module: nn.Module, inputs: tuple[Any, ...], target: Target, tolerance: float) -> None:
    flat = Flat(module)
    mod = optimize(import_model(flat, inputs).mod, target)
    found = compile_model(mod, target)(*[x.detach().numpy() for x in inputs])
    with torch.no_grad():
        expected = flat(*inputs)
    for mine, its in zip(found, expected, strict=True):
        assert mine.dtype == its.numpy().dtype
        np.testing.assert_allclose(mine, its.numpy(), rtol=tolerance, atol=tolerance)


# PyTorch warns that projections are slow on CPUs.
pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str, target: Target) -> None:
    module = layer(name)
    check(module, (torch.randn(ROWS, STEPS, SIZE),), target, 1e-5)


@pytest.mark.parametrize("name", ["lstm", "lstm, projected", "gru, both directions", "rnn"])
def test_first_states(name: str, target: Target) -> None:
    module: Any = layer(name)
    x = torch.randn(*((ROWS, STEPS) if module.batch_first else (STEPS, ROWS)), SIZE)
    first = states(module, ROWS)
    given = first if isinstance(first, tuple) else (first,)
    check(module, (x, *given), target, 1e-5)


@pytest.mark.parametrize("name", ["lstm", "gru, both directions", "rnn"])
def test_one_sequence_without_an_axis_of_rows(name: str, target: Target) -> None:
    check(layer(name), (torch.randn(STEPS, SIZE),), target, 1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float16", 5e-3)])
def test_other_dtypes(dtype: str, tolerance: float, target: Target) -> None:
    module = layer("lstm").to(getattr(torch, dtype))
    x = torch.randn(ROWS, STEPS, SIZE).to(getattr(torch, dtype))
    check(module, (x,), target, tolerance)


@pytest.mark.slow
def test_long_sequences_and_large_values(target: Target) -> None:
    module = layer("gru")
    check(module, (100 * torch.randn(1, 70, SIZE),), target, 1e-5)


def test_one_step(target: Target) -> None:
    check(layer("lstm"), (torch.randn(ROWS, 1, SIZE),), target, 1e-5)


def test_all_steps_call_one_function(target: Target) -> None:
    module = nn.LSTM(SIZE, UNITS, 2, batch_first=True)
    mod = optimize(import_model(Flat(module), (torch.randn(1, STEPS, SIZE),)).mod, target)
    weights = {f.name: f.weight for f in extract_functions(mod)}
    assert weights["lstm_step"] == 2 * STEPS


def test_packed_sequences_are_refused() -> None:
    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.LSTM(SIZE, UNITS, batch_first=True)

        def forward(self, x: Any) -> Any:
            lengths = torch.full((ROWS,), STEPS)
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
            return self.inner(packed)[0].data

    with pytest.raises(UnsupportedError):
        import_model(Packed(), (torch.randn(ROWS, STEPS, SIZE),))
