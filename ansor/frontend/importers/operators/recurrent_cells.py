"""One step of a recurrent layer as a TE definition: a product with the state, then the gates.

All steps of a layer call one function. It reads the products of the inputs of all steps and picks
its own by an index tensor, so that nothing is copied between steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tirx

Activation = Callable[[Any], Any]  # a scalar expression to another

LSTM, GRU, RNN = "lstm", "gru", "rnn"


@dataclass(frozen=True)
class Cell:
    """The operation of a recurrent layer.

    Attributes:
        kind: `LSTM`, `GRU` or `RNN`.
        gates: a letter for each gate in the order of the weights' rows: of "ifgo" for an LSTM
            (input, forget, candidate, output), of "rzn" for a GRU (reset, update, candidate), "h".
        activations: of the gates, of the candidate, of the cell where there is one.
        clip: bound of the operands of gates' and candidate's activations; None for none.
        reset_after: a GRU's reset gate is applied after the product with the state, not before.
        coupled: an LSTM's forget gate is one minus its input gate.
    """

    kind: str
    gates: str
    activations: tuple[Activation, ...]
    clip: float | None = None
    reset_after: bool = True
    coupled: bool = False

    @property
    def num_states(self) -> int:
        """The hidden state, and the cell of an LSTM."""
        return 2 if self.kind == LSTM else 1


@dataclass(frozen=True)
class Operands:
    """TE tensors of a step: T steps, B rows, G gates, H units, P of them after a projection.

    Attributes:
        inputs: `[T, B, G, H]`, products of the inputs and weights, biases added.
        index: `[1] int32`, the step.
        hidden: `[B, P]`, P = H without a projection.
        weight: `[P, G, H]`.
        cell: `[B, H]`, of an LSTM.
        bias: `[H]`, added to a GRU's candidate before the reset gate is applied.
        peepholes: `[3, H]`, of input, output and forget gate.
        projection: `[H, P]`.
        lengths: `[B] int32`: number of steps of each row.
    """

    inputs: Any
    index: Any
    hidden: Any
    weight: Any
    cell: Any = None
    bias: Any = None
    peepholes: Any = None
    projection: Any = None
    lengths: Any = None

    @property
    def step(self) -> Any:
        """The index, clamped to the bounds."""
        last = tirx.IntImm("int32", int(self.inputs.shape[0]) - 1)
        return te.max(te.min(self.index[0], last), tirx.IntImm("int32", 0))


def define_step(cell: Cell, operands: Operands) -> tuple[Any, ...]:
    """The new hidden state `[B, P]`, and an LSTM's new cell `[B, H]`."""
    return {LSTM: _lstm, GRU: _gru, RNN: _rnn}[cell.kind](cell, operands)


def _product(state: Any, weight: Any, gates: Sequence[int], name: str) -> Any:
    """`[B, len(gates), H]`: the state times the weights of some gates, which lie in a row."""
    rows, depth, units = state.shape[0], state.shape[1], weight.shape[2]
    k = te.reduce_axis((0, depth), "k")
    first = gates[0]
    return te.compute(
        (rows, len(gates), units),
        lambda n, g, j: te.sum(state[n, k] * weight[k, g + first if first else g, j], axis=k),
        name=name,
    )


def _clipped(cell: Cell, value: Any) -> Any:
    if cell.clip is None:
        return value
    bound = tirx.const(cell.clip, str(value.ty.dtype))
    return te.max(te.min(value, bound), -bound)


def _kept(operands: Operands, new: Any, old: Any, row: Any) -> Any:
    """The new state; the old one after the end of a row."""
    if operands.lengths is None:
        return new
    return tirx.Select(operands.index[0] < operands.lengths[row], new, old)


def _rnn(cell: Cell, o: Operands) -> tuple[Any, ...]:
    product = _product(o.hidden, o.weight, [0], "state_product")
    (activation,) = cell.activations

    def new(n: Any, j: Any) -> Any:
        value = activation(_clipped(cell, product[n, 0, j] + o.inputs[o.step, n, 0, j]))
        return _kept(o, value, o.hidden[n, j], n)

    return (te.compute(o.hidden.shape, new, name="new_hidden"),)


def _lstm(cell: Cell, o: Operands) -> tuple[Any, ...]:
    place = {gate: cell.gates.index(gate) for gate in "ifgo"}
    product = _product(o.hidden, o.weight, range(4), "state_product")
    gate, candidate, output = cell.activations

    def before(name: str, n: Any, j: Any, seen: Any = None, hole: int = 0) -> Any:
        value = product[n, place[name], j] + o.inputs[o.step, n, place[name], j]
        if o.peepholes is not None and seen is not None:
            value = value + o.peepholes[hole, j] * seen
        return _clipped(cell, value)

    def new_cell(n: Any, j: Any) -> Any:
        old = o.cell[n, j]
        share = gate(before("i", n, j, old, 0))
        kept = 1 - share if cell.coupled else gate(before("f", n, j, old, 2))
        return kept * old + share * candidate(before("g", n, j))

    fresh = te.compute(o.cell.shape, new_cell, name="fresh_cell")

    def new_hidden(n: Any, j: Any) -> Any:
        return gate(before("o", n, j, fresh(n, j), 1)) * output(fresh(n, j))

    hidden = te.compute(o.cell.shape, new_hidden, name="fresh_hidden")
    if o.projection is not None:
        hidden = _projected(hidden, o.projection)
    return _masked(o, hidden, o.hidden, "new_hidden"), _masked(o, fresh, o.cell, "new_cell")


def _projected(hidden: Any, weight: Any) -> Any:
    k = te.reduce_axis((0, weight.shape[0]), "k")
    shape = (hidden.shape[0], weight.shape[1])
    return te.compute(
        shape, lambda n, j: te.sum(hidden[n, k] * weight[k, j], axis=k), name="projected"
    )


def _masked(o: Operands, new: Any, old: Any, name: str) -> Any:
    if o.lengths is None:
        return new
    return te.compute(new.shape, lambda n, j: _kept(o, new[n, j], old[n, j], n), name=name)


def _gru(cell: Cell, o: Operands) -> tuple[Any, ...]:
    place = {gate: cell.gates.index(gate) for gate in "rzn"}
    if cell.reset_after:
        product = _product(o.hidden, o.weight, range(3), "state_product")
    else:
        product = _product(o.hidden, o.weight, [0, 1], "state_product")
    gate, activation = cell.activations

    def gated(name: str, n: Any, j: Any) -> Any:
        value = product[n, place[name], j] + o.inputs[o.step, n, place[name], j]
        return gate(_clipped(cell, value))

    candidate = _reset_after(o, product, place["n"], gated) if cell.reset_after else None
    if candidate is None:
        candidate = _reset_before(o, place["n"], gated)

    def new(n: Any, j: Any) -> Any:
        value = o.inputs[o.step, n, place["n"], j] + candidate(n, j)
        fresh, share = activation(_clipped(cell, value)), gated("z", n, j)
        mixed = (1 - share) * fresh + share * o.hidden[n, j]
        return _kept(o, mixed, o.hidden[n, j], n)

    return (te.compute(o.hidden.shape, new, name="new_hidden"),)


def _reset_after(o: Operands, product: Any, place: int, gated: Any) -> Any:
    def part(n: Any, j: Any) -> Any:
        value = product[n, place, j] if o.bias is None else product[n, place, j] + o.bias[j]
        return gated("r", n, j) * value

    return part


def _reset_before(o: Operands, place: int, gated: Any) -> Any:
    reset = te.compute(o.hidden.shape, lambda n, j: gated("r", n, j) * o.hidden[n, j], name="reset")
    product = _product(reset, o.weight, [place], "candidate_product")
    return lambda n, j: product[n, 0, j]
