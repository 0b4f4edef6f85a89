"""ONNX's RNN, GRU and LSTM: both directions, peepholes, clipping, activations, lengths of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tvm import relax

from ansor.errors import UnsupportedError
from ansor.frontend.importers.operators.recurrent import Outputs, Weights, recurrent_layer
from ansor.frontend.importers.operators.recurrent_activations import activations
from ansor.frontend.importers.operators.recurrent_cells import GRU, LSTM, RNN, Cell
from ansor.frontend.rewrite import constant, static_shape

_DEFAULTS = {
    RNN: ("h", ("Tanh",)),
    GRU: ("zrn", ("Sigmoid", "Tanh")),
    LSTM: ("iofg", ("Sigmoid", "Tanh", "Tanh")),
}
_KINDS = {"RNN": RNN, "GRU": GRU, "LSTM": LSTM}
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
_KNOWN = frozenset(
    (
        "activation_alpha",
        "activation_beta",
        "activations",
        "clip",
        "direction",
        "hidden_size",
        "input_forget",
        "layout",
        "linear_before_reset",
    )
)


@dataclass(frozen=True)
class _Inputs:
    """Operands in ONNX's order; D directions, G gates, H units."""

    x: Any  # [T, B, I]
    w: Any  # [D, G * H, I]
    r: Any  # [D, G * H, H]
    b: Any = None  # [D, 2 * G * H]
    lengths: Any = None  # [B] int32
    hidden: Any = None  # [D, B, H]
    cell: Any = None  # [D, B, H]
    peepholes: Any = None  # [D, 3 * H]


def recurrent(
    bb: relax.BlockBuilder,
    operator: str,
    attributes: Mapping[str, Any],
    operands: Sequence[Any],
) -> list[Any]:
    """All results of the operator: Y, Y_h, and Y_c of an LSTM.

    Args:
        bb: where expressions are bound.
        operator: "RNN", "GRU" or "LSTM".
        attributes: by name; texts as `str`.
        operands: None for one that is left out.

    Raises:
        UnsupportedError: an attribute or an activation that is not supported.
    """
    unknown = [name for name in attributes if name not in _KNOWN]
    if unknown:
        raise UnsupportedError(f"its attribute {unknown[0]} is not supported")
    kind = _KINDS[operator]
    backwards = _DIRECTIONS[str(attributes.get("direction", "forward"))]
    cells = _cells(kind, attributes, len(backwards))
    inputs = _Inputs(*operands)
    if attributes.get("layout", 0):
        inputs = _time_first(bb, inputs)
    parts = _split(bb, inputs, len(backwards))
    found = [
        _direction(bb, cell, part, is_backwards)
        for cell, part, is_backwards in zip(cells, parts, backwards, strict=True)
    ]
    return _results(bb, found, bool(attributes.get("layout", 0)))


def _cells(kind: str, attributes: Mapping[str, Any], directions: int) -> list[Cell]:
    gates, default = _DEFAULTS[kind]
    names = list(attributes.get("activations") or default * directions)
    alphas, betas = (
        attributes.get("activation_alpha") or (),
        attributes.get("activation_beta") or (),
    )
    functions = activations(names, list(alphas), list(betas))
    count = len(default)
    clip = float(attributes.get("clip", 0.0))
    return [
        Cell(
            kind,
            gates,
            functions[i * count : (i + 1) * count],
            clip or None,
            bool(attributes.get("linear_before_reset", 0)),
            bool(attributes.get("input_forget", 0)),
        )
        for i in range(directions)
    ]


def _time_first(bb: relax.BlockBuilder, inputs: _Inputs) -> _Inputs:
    """Of `layout=1`, where rows come first in the data and in the states."""

    def turned(value: Any) -> Any:
        return None if value is None else bb.emit(relax.op.permute_dims(value, [1, 0, 2]))

    return replace(
        inputs, x=turned(inputs.x), hidden=turned(inputs.hidden), cell=turned(inputs.cell)
    )


def _split(bb: relax.BlockBuilder, inputs: _Inputs, directions: int) -> list[_Inputs]:
    """The operands of each direction, without the axis of directions."""

    def part(value: Any, place: int) -> Any:
        if value is None:
            return None
        taken = bb.emit(relax.op.strided_slice(value, [0], [place], [place + 1]))
        return bb.emit(relax.op.reshape(taken, _shape(value)[1:]))

    shared = ("x", "lengths")
    names = [name for name in vars(inputs) if name not in shared]
    return [
        replace(inputs, **{name: part(getattr(inputs, name), place) for name in names})
        for place in range(directions)
    ]


def _direction(bb: relax.BlockBuilder, cell: Cell, of: _Inputs, backwards: bool) -> Outputs:
    units = _shape(of.r)[1]
    rows, dtype = _shape(of.x)[1], str(of.x.ty.dtype)
    zeros = constant(np.zeros((rows, units)), dtype)
    states = [zeros if of.hidden is None else of.hidden]
    if cell.kind == LSTM:
        states.append(zeros if of.cell is None else of.cell)
    return recurrent_layer(bb, of.x, cell, _weights(bb, cell, of), states, backwards, of.lengths)


def _weights(bb: relax.BlockBuilder, cell: Cell, of: _Inputs) -> Weights:
    units = _shape(of.r)[1]
    holes = None
    if of.peepholes is not None:
        holes = bb.emit(relax.op.reshape(of.peepholes, (3, units)))
    if of.b is None:
        return Weights(of.w, of.r, peepholes=holes)
    count = len(cell.gates) * units
    own, other = _slice(bb, of.b, 0, count), _slice(bb, of.b, count, 2 * count)
    if cell.kind != GRU or not cell.reset_after:
        return Weights(of.w, of.r, bb.emit(relax.op.add(own, other)), peepholes=holes)
    gates, candidate = _slice(bb, other, 0, 2 * units), _slice(bb, other, 2 * units, count)
    zeros = constant(np.zeros(units), str(of.b.ty.dtype))
    both = bb.emit(relax.op.add(own, bb.emit(relax.op.concat([gates, zeros], 0))))
    return Weights(of.w, of.r, both, candidate_bias=candidate)


def _slice(bb: relax.BlockBuilder, vector: Any, begin: int, end: int) -> Any:
    return bb.emit(relax.op.strided_slice(vector, [0], [begin], [end]))


def _results(bb: relax.BlockBuilder, found: Sequence[Outputs], rows_first: bool) -> list[Any]:
    """`[T, D, B, H]` and states `[D, B, H]`; with rows first `[B, T, D, H]` and `[B, D, H]`."""
    sequence = _stacked(bb, [one.sequence for one in found], 1)
    states = [_stacked(bb, parts, 0) for parts in zip(*(one.states for one in found), strict=True)]
    if not rows_first:
        return [sequence, *states]
    turned = [bb.emit(relax.op.permute_dims(state, [1, 0, 2])) for state in states]
    return [bb.emit(relax.op.permute_dims(sequence, [2, 0, 1, 3])), *turned]


def _stacked(bb: relax.BlockBuilder, parts: Sequence[Any], axis: int) -> Any:
    wide = [bb.emit(relax.op.expand_dims(part, axis)) for part in parts]
    return bb.emit(relax.op.concat(wide, axis)) if len(wide) > 1 else wide[0]


def _shape(expr: Any) -> tuple[int, ...]:
    shape = static_shape(expr)
    assert shape is not None, "importers refuse dynamic shapes before"
    return shape
