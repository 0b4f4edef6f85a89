"""Recurrent layers (RNN, GRU, LSTM) of PyTorch and ONNX.

The products of the inputs of all steps are one matrix product. The steps that follow call one
function (`recurrent_cells`), which the search tunes once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax, te, tirx

from ansor.config import IMPORTS
from ansor.frontend.importers.conversion import shape_of
from ansor.frontend.importers.operators.recurrent_cells import Cell, Operands, define_step
from ansor.frontend.rewrite import constant


@dataclass(frozen=True)
class Weights:
    """The weights of one direction of a layer: I inputs, G gates, H units, P of them after a
    projection.

    Attributes:
        input: `[G * H, I]`.
        hidden: `[G * H, P]`.
        bias: `[G * H]`, of both products together.
        candidate_bias: `[H]`, see `Operands.bias`; not part of `bias`.
        peepholes: `[3, H]`, of input, output and forget gate.
        projection: `[P, H]`.
    """

    input: Any
    hidden: Any
    bias: Any = None
    candidate_bias: Any = None
    peepholes: Any = None
    projection: Any = None


@dataclass(frozen=True)
class Outputs:
    """The results of a direction of a layer.

    Attributes:
        sequence: `[T, B, P]`, the hidden state after each step.
        states: the last hidden state `[B, P]`, and the last cell `[B, H]` of an LSTM.
    """

    sequence: Any
    states: tuple[Any, ...]


def recurrent_layer(
    bb: relax.BlockBuilder,
    x: Any,
    cell: Cell,
    weights: Weights,
    states: Sequence[Any],
    backwards: bool = False,
    lengths: Any = None,
) -> Outputs:
    """One direction of a layer.

    Args:
        bb: where expressions are bound.
        x: `[T, B, I]`.
        cell: the operation of a step.
        weights: all of the dtype of `x`.
        states: the first hidden state `[B, P]`, and the first cell `[B, H]` of an LSTM.
        backwards: the last step comes first; results keep the order of the inputs.
        lengths: `[B] int32`: steps of each row. Later steps do not change the states, and give
            zeros.
    """
    steps = shape_of(x)[0]
    step = _Step(bb, cell, weights, _input_products(bb, x, cell, weights), lengths)
    current, hidden = tuple(states), {}
    for at in reversed(range(steps)) if backwards else range(steps):
        current = step(at, current)
        hidden[at] = current[0]
    sequence = _stacked(bb, [hidden[at] for at in range(steps)])
    if lengths is not None:
        sequence = _without_rest(bb, sequence, lengths)
    return Outputs(sequence, current)


def _input_products(bb: relax.BlockBuilder, x: Any, cell: Cell, weights: Weights) -> Any:
    """`[T, B, G, H]`."""
    steps, rows, size = shape_of(x)
    flat = bb.emit(relax.op.reshape(x, (steps * rows, size)))
    turned = bb.emit(relax.op.permute_dims(weights.input, [1, 0]))
    product = bb.emit(relax.op.matmul(flat, turned))
    if weights.bias is not None:
        product = bb.emit(relax.op.add(product, weights.bias))
    gates = len(cell.gates)
    units = shape_of(weights.input)[0] // gates
    return bb.emit(relax.op.reshape(product, (steps, rows, gates, units)))


class _Step:
    """Calls the function of a step.

    Args:
        inputs: `[T, B, G, H]`, see `Operands`.
    """

    def __init__(
        self, bb: relax.BlockBuilder, cell: Cell, weights: Weights, inputs: Any, lengths: Any
    ) -> None:
        self._bb, self._cell, self._inputs = bb, cell, inputs
        self._more = {
            "weight": _hidden_weight(bb, weights.hidden, len(cell.gates)),
            "bias": weights.candidate_bias,
            "peepholes": weights.peepholes,
            "projection": _transposed(bb, weights.projection),
            "lengths": lengths,
        }
        self._more = {name: value for name, value in self._more.items() if value is not None}
        self._function: Any = None

    def __call__(self, at: int, states: tuple[Any, ...]) -> tuple[Any, ...]:
        index = constant(np.array([at], np.int32))
        named = dict(zip(("hidden", "cell"), states, strict=False))
        arguments = {"inputs": self._inputs, "index": index, **named, **self._more}
        if self._function is None:
            function = _function(self._cell, arguments)
            self._function = self._bb.add_func(function, f"{self._cell.kind}_step")
        types = [relax.TensorType(shape_of(state), str(state.ty.dtype)) for state in states]
        operands = relax.Tuple(list(arguments.values()))
        result = self._bb.emit(relax.call_tir(self._function, operands, _one_or_all(types)))
        if len(types) == 1:
            return (result,)
        return tuple(self._bb.emit(relax.TupleGetItem(result, i)) for i in range(len(types)))


def _one_or_all(types: list[Any]) -> Any:
    return types[0] if len(types) == 1 else types


def _hidden_weight(bb: relax.BlockBuilder, weight: Any, gates: int) -> Any:
    """`[P, G, H]` of `[G * H, P]`: units lie side by side, as vectors read them."""
    rows, size = shape_of(weight)
    parts = bb.emit(relax.op.reshape(weight, (gates, rows // gates, size)))
    return bb.emit(relax.op.permute_dims(parts, [2, 0, 1]))


def _transposed(bb: relax.BlockBuilder, weight: Any) -> Any:
    return None if weight is None else bb.emit(relax.op.permute_dims(weight, [1, 0]))


def _function(cell: Cell, arguments: dict[str, Any]) -> tirx.PrimFunc:
    tensors = {
        name: te.placeholder(shape_of(value), str(value.ty.dtype), name)
        for name, value in arguments.items()
    }
    outputs = define_step(cell, Operands(**tensors))
    function: tirx.PrimFunc = te.create_prim_func([*tensors.values(), *outputs])
    return function.without_attr("global_symbol")


def _stacked(bb: relax.BlockBuilder, parts: Sequence[Any]) -> Any:
    """`[T, B, P]` of T tensors `[B, P]`."""
    rows = [bb.emit(relax.op.expand_dims(part, 0)) for part in parts]
    while len(rows) > 1:
        most = IMPORTS.max_joined
        groups = [rows[i : i + most] for i in range(0, len(rows), most)]
        rows = [_joined(bb, group) for group in groups]
    return rows[0]


def _joined(bb: relax.BlockBuilder, group: list[Any]) -> Any:
    return bb.emit(relax.op.concat(group, 0)) if len(group) > 1 else group[0]


def _without_rest(bb: relax.BlockBuilder, sequence: Any, lengths: Any) -> Any:
    """Zeros behind the end of each row."""
    steps = constant(np.arange(shape_of(sequence)[0], dtype=np.int32).reshape(-1, 1, 1))
    ends = bb.emit(relax.op.reshape(lengths, (1, -1, 1)))
    zero = constant(np.zeros((), str(sequence.ty.dtype)))
    within = bb.emit(relax.op.less(steps, ends))
    return bb.emit(relax.op.where(within, sequence, zero))
