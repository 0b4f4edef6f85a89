"""`torch.nn.LSTM`, `GRU` and `RNN`, in eval mode: kept whole by the decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from tvm import relax

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import HALF, shape_of
from ansor.frontend.importers.from_torch.converters.context import Context
from ansor.frontend.importers.from_torch.converters.registry import converts
from ansor.frontend.importers.operators.recurrent import Weights, recurrent_layer
from ansor.frontend.importers.operators.recurrent_activations import relu, sigmoid, tanh
from ansor.frontend.importers.operators.recurrent_cells import GRU, LSTM, RNN, Cell

# A decomposed recurrent layer has a few operators for each step, and steps share none of them.
WHOLE = tuple(
    getattr(torch.ops.aten, name).input for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")
)

_LSTM = Cell(LSTM, "ifgo", (sigmoid, tanh, tanh))
_GRU = Cell(GRU, "rzn", (sigmoid, tanh))
_RNN_TANH = Cell(RNN, "h", (tanh,))
_RNN_RELU = Cell(RNN, "h", (relu,))


@converts("lstm.input")
def lstm(
    context: Context, x: Any, hx: Any, params: Any, has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> list[Any]:  # fmt: skip
    """The output, the last hidden states and the last cells."""
    _check_eval(dropout, train)
    layers = _Layers(context, _LSTM, params, has_biases, num_layers, bidirectional)
    return layers.run(x, list(hx), batch_first)


@converts("gru.input")
def gru(
    context: Context, x: Any, hx: Any, params: Any, has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> list[Any]:  # fmt: skip
    """The output and the last hidden states."""
    _check_eval(dropout, train)
    layers = _Layers(context, _GRU, params, has_biases, num_layers, bidirectional)
    return layers.run(x, [hx], batch_first)


@converts("rnn_tanh.input", "rnn_relu.input")
def rnn(
    context: Context, x: Any, hx: Any, params: Any, has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> list[Any]:  # fmt: skip
    """The output and the last hidden states."""
    _check_eval(dropout, train)
    cell = _RNN_RELU if "relu" in context.node.target.__name__ else _RNN_TANH
    layers = _Layers(context, cell, params, has_biases, num_layers, bidirectional)
    return layers.run(x, [hx], batch_first)


def _check_eval(dropout: float, train: bool) -> None:
    if train and dropout:
        raise OperatorError("its dropout draws random numbers", "put it into eval mode")


class _Layers:
    """A stack of recurrent layers; computes in float32 for shorter dtypes.

    Args:
        params: weights of all layers and directions in PyTorch's order.
    """

    def __init__(
        self, context: Context, cell: Cell, params: Sequence[Any], has_biases: bool,
        num_layers: int, bidirectional: bool,
    ) -> None:  # fmt: skip
        self._context, self._cell, self._has_biases = context, cell, has_biases
        self._directions = 2 if bidirectional else 1
        self._num_layers = num_layers
        self._dtype = "float32" if context.dtype in HALF else context.dtype
        count = len(params) // (num_layers * self._directions)
        wide = [context.cast(value, self._dtype) for value in params]
        self._params = [wide[i : i + count] for i in range(0, len(wide), count)]

    def run(self, x: Any, states: list[Any], batch_first: bool) -> list[Any]:
        """`x` is `[T, B, I]`, `[B, T, I]` or `[T, I]`; states are `[layers * directions, B, H]`."""
        batched = len(shape_of(x)) == 3
        current = self._time_first(self._context.cast(x, self._dtype), batched, batch_first)
        first = [self._parts(self._batched(state)) for state in states]
        last: list[tuple[Any, ...]] = []
        for layer in range(self._num_layers):
            found = [self._direction(current, layer, d, first) for d in range(self._directions)]
            last += [result.states for result in found]
            current = self._joined([result.sequence for result in found], -1)
        output = self._as_given(current, batched, batch_first)
        kinds = [self._stacked(parts, batched) for parts in zip(*last, strict=True)]
        return [self._context.cast(value, self._context.dtype) for value in (output, *kinds)]

    def _direction(self, x: Any, layer: int, direction: int, first: list[list[Any]]) -> Any:
        place = layer * self._directions + direction
        states = [parts[place] for parts in first]
        weights = self._weights(self._params[place])
        return recurrent_layer(self._context.bb, x, self._cell, weights, states, direction == 1)

    def _weights(self, params: Sequence[Any]) -> Weights:
        inputs, hidden, *rest = params
        biases, rest = (rest[:2], rest[2:]) if self._has_biases else ([], rest)
        if self._cell.kind == GRU and biases:
            return self._gru_weights(inputs, hidden, *biases)
        bias = self._context.emit(relax.op.add(*biases)) if biases else None
        return Weights(inputs, hidden, bias, projection=rest[0] if rest else None)

    def _gru_weights(self, input_: Any, hidden: Any, own: Any, recurrent: Any) -> Weights:
        """The reset gate acts on the candidate's second bias, so that the two stay apart."""
        emit, units = self._context.emit, shape_of(hidden)[1]
        gates = emit(relax.op.strided_slice(recurrent, [0], [0], [2 * units]))
        candidate = emit(relax.op.strided_slice(recurrent, [0], [2 * units], [3 * units]))
        zeros = self._context.broadcast(self._context.cast(0.0, self._dtype), (units,))
        bias = emit(relax.op.add(own, emit(relax.op.concat([gates, zeros], 0))))
        return Weights(input_, hidden, bias=bias, candidate_bias=candidate)

    def _time_first(self, x: Any, batched: bool, batch_first: bool) -> Any:
        if not batched:
            return self._context.emit(relax.op.expand_dims(x, 1))
        return self._swapped(x) if batch_first else x

    def _as_given(self, output: Any, batched: bool, batch_first: bool) -> Any:
        if not batched:
            return self._context.emit(relax.op.squeeze(output, [1]))
        return self._swapped(output) if batch_first else output

    def _swapped(self, x: Any) -> Any:
        return self._context.emit(relax.op.permute_dims(x, [1, 0, 2]))

    def _batched(self, state: Any) -> Any:
        wide = self._context.cast(state, self._dtype)
        few = len(shape_of(wide)) == 2
        return self._context.emit(relax.op.expand_dims(wide, 1)) if few else wide

    def _parts(self, state: Any) -> list[Any]:
        """The state of each layer and direction, `[B, H]`."""
        shape = shape_of(state)
        if shape[0] == 1:
            return [self._context.reshape(state, shape[1:])]
        parts = [
            self._context.emit(relax.op.strided_slice(state, [0], [place], [place + 1]))
            for place in range(shape[0])
        ]
        return [self._context.reshape(part, shape[1:]) for part in parts]

    def _stacked(self, parts: Sequence[Any], batched: bool) -> Any:
        """`[layers * directions, B, H]`, or without the axis of rows."""
        axis = 0
        if batched:
            parts = [self._context.emit(relax.op.expand_dims(part, 0)) for part in parts]
        return self._joined(list(parts), axis)

    def _joined(self, parts: list[Any], axis: int) -> Any:
        if len(parts) == 1:
            return parts[0]
        return self._context.emit(relax.op.concat(parts, axis % len(shape_of(parts[0]))))
