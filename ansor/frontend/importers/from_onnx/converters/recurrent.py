"""RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm import relax

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import HALF, dtype_of, shape_of
from ansor.frontend.importers.from_onnx.converters.context import Context, Converter
from ansor.frontend.importers.operators.recurrent import Outputs, Weights, recurrent_layer
from ansor.frontend.importers.operators.recurrent_activations import activations
from ansor.frontend.importers.operators.recurrent_cells import GRU, LSTM, RNN, Cell
from ansor.frontend.rewrite import constant

op = relax.op
# The gates in ONNX's order and the default activations of a direction.
_GATES = {LSTM: "iofg", GRU: "zrn", RNN: "h"}
_ACTIVATIONS = {LSTM: ["Sigmoid", "Tanh", "Tanh"], GRU: ["Sigmoid", "Tanh"], RNN: ["Tanh"]}


class _Layer:
    """A recurrent node."""

    def __init__(self, c: Context, kind: str) -> None:
        self.c, self.kind = c, kind
        self.is_batch_first = bool(c.attr("layout", 0))
        x = c.operand(0)
        if dtype_of(x) in HALF:
            raise OperatorError(f"it is not supported for {dtype_of(x)}")
        self.x = c.emit(op.permute_dims(x, [1, 0, 2])) if self.is_batch_first else x
        self.rows = shape_of(self.x)[1]
        self.units = shape_of(c.operand(2))[2]
        direction = c.attr("direction", "forward")
        self.backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[
            direction
        ]

    def outputs(self) -> list[Any]:
        """All steps `[T, D, B, H]`, the last state `[D, B, H]`, an LSTM's last cell."""
        found = [self._direction(d) for d in range(len(self.backwards))]
        sequence = self._stacked([f.sequence for f in found], 1)
        states = [
            self._stacked([f.states[k] for f in found], 0) for k in range(len(found[0].states))
        ]
        if self.is_batch_first:
            sequence = self.c.emit(op.permute_dims(sequence, [2, 0, 1, 3]))
            states = [self.c.emit(op.permute_dims(state, [1, 0, 2])) for state in states]
        return [sequence, *states][: len(self.c.node.output)]

    def _stacked(self, parts: list[Any], axis: int) -> Any:
        wide = [self.c.emit(op.expand_dims(part, axis)) for part in parts]
        return wide[0] if len(wide) == 1 else self.c.emit(op.concat(wide, axis))

    def _direction(self, d: int) -> Outputs:
        lengths = self.c.cast(self.c.operand(4), "int32") if self.c.has(4) else None
        cell = self._cell(d)
        states = [self._state(5, d)] + ([self._state(6, d)] if self.kind == LSTM else [])
        weights = self._weights(d, cell)
        return recurrent_layer(self.c.bb, self.x, cell, weights, states, self.backwards[d], lengths)

    def _cell(self, d: int) -> Cell:
        c, default = self.c, _ACTIVATIONS[self.kind]
        count = len(default)
        names = [_text(n) for n in c.attr("activations") or default * len(self.backwards)]
        alphas, betas = (
            list(c.attr("activation_alpha") or []),
            list(c.attr("activation_beta") or []),
        )
        functions = activations(names, alphas, betas)[d * count : (d + 1) * count]
        return Cell(
            self.kind,
            _GATES[self.kind],
            functions,
            c.attr("clip"),
            bool(c.attr("linear_before_reset", 0)),
            bool(c.attr("input_forget", 0)),
        )

    def _part(self, place: int, d: int) -> Any:
        """One direction's part of a weight."""
        value = self.c.operand(place)
        shape = shape_of(value)
        part = value
        if shape[0] > 1:
            part = self.c.emit(op.strided_slice(value, [0], [d], [d + 1]))
        return self.c.reshape(part, shape[1:])

    def _state(self, place: int, d: int) -> Any:
        if not self.c.has(place):
            return constant(np.zeros((self.rows, self.units)), dtype_of(self.x))
        value = self.c.operand(place)
        axis = 1 if self.is_batch_first else 0
        part = value
        if shape_of(value)[axis] > 1:
            part = self.c.emit(op.strided_slice(value, [axis], [d], [d + 1]))
        return self.c.reshape(part, (self.rows, self.units))

    def _weights(self, d: int, cell: Cell) -> Weights:
        c = self.c
        bias = candidate = None
        if c.has(3):
            bias, candidate = self._bias(self._part(3, d), cell)
        peepholes = None
        if self.kind == LSTM and c.has(7):
            peepholes = c.reshape(self._part(7, d), (3, self.units))
        return Weights(self._part(1, d), self._part(2, d), bias, candidate, peepholes)

    def _bias(self, both: Any, cell: Cell) -> tuple[Any, Any]:
        """The sum of the two biases; a GRU's candidate may keep its second one apart."""
        c = self.c
        size = shape_of(both)[0] // 2
        own = c.emit(op.strided_slice(both, [0], [0], [size]))
        second = c.emit(op.strided_slice(both, [0], [size], [2 * size]))
        if self.kind != GRU or not cell.reset_after:
            return c.emit(op.add(own, second)), None
        cut = 2 * self.units
        gates = c.emit(op.strided_slice(second, [0], [0], [cut]))
        zeros = c.broadcast(c.number(0, own), (self.units,))
        candidate = c.emit(op.strided_slice(second, [0], [cut], [size]))
        return c.emit(op.add(own, c.emit(op.concat([gates, zeros], 0)))), candidate


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _recurrent(kind: str) -> Converter:
    return lambda c: _Layer(c, kind).outputs()


CONVERTERS: Mapping[str, Converter] = {
    "LSTM": _recurrent(LSTM),
    "GRU": _recurrent(GRU),
    "RNN": _recurrent(RNN),
}
