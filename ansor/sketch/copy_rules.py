"""Rules that copy operands, packed or transposed, and that choose the vectorised axis.

Deviation: the paper changes the layout of constant operands only, and always vectorises the last
axis. If memory has another order, each vector then needs a gather.
"""

from __future__ import annotations

from dataclasses import replace

from ansor.dag import edit, operands, predicates
from ansor.dag.padding import is_padded
from ansor.program.decision import category
from ansor.program.steps import MoveAxis, RegisterTile, SplitAxis, Transpose
from ansor.sketch import tables
from ansor.sketch.rule import Derivation, RuleContext, holes_of, locations_of
from ansor.sketch.state import State
from ansor.targets.cpu.machine import Hardware


def choose_vector_axis(state: State, context: RuleContext[Hardware]) -> Derivation:
    """Vectorises another axis if the last one does not fill vectors.

    If channels come first, rows of an image may be too short for vectors, or they have a stride and
    need gathers. Vectors of filters have neither problem, after a transposition of their operand.
    If there are few filters, vectors run along the rows, or along one phase of each row.
    """
    name, dag = state.current, state.dag
    consumer = predicates.fusible_consumer(dag, name)
    if consumer is None or not predicates.has_data_reuse(dag, name) or consumer in state.tiled:
        return Derivation()
    if any(isinstance(step, MoveAxis) and step.stage == name for step in state.steps):
        return Derivation()
    if dag.stages[name].instruction:  # its operands are in groups along the vectors
        return Derivation()
    stage = dag.stages[name]
    lanes = context.machine.lanes(dag.buffers[stage.output].item_bytes)
    few = stage.axes[stage.spatial[-1]].size <= context.config.few_lanes * lanes
    split = phased(state, consumer) if few else state
    axis = operands.other_vector_axis(split.dag, name, lanes, windows=few)
    jumps = operands.jumps_along_vectors(dag, name)
    if axis is None or not (jumps or tables.leaves_lanes_idle(stage, lanes)):
        return Derivation()
    moved = replace(split, dag=edit.move_axis(split.dag, name, axis, consumer))
    return Derivation((moved.add(MoveAxis(name, axis, consumer)),), exclusive=jumps)


def phased(state: State, consumer: str) -> State:
    """`state` with each axis of its current stage that has phases split into two axes.

    Points of one phase share their operands. They can then form a tile.
    """
    name = state.current
    for axis, turn in reversed(operands.phases(state.dag, name).items()):
        dag = edit.split_axis(state.dag, name, axis, turn, consumer)
        state = replace(state, dag=dag).add(SplitAxis(name, axis, turn, consumer))
    return state


def pack_operand(state: State, context: RuleContext[Hardware]) -> Derivation:
    """Copies the operand that runs along the vectorised axis, to be packed tile by tile.

    The innermost loops then read contiguous memory. The rule applies to operands that are read
    often and exceed the second cache.
    """
    name, dag, config = state.current, state.dag, context.config
    if not predicates.has_data_reuse(dag, name):
        return Derivation()
    buffer = operands.vector_operand(dag, name)
    if buffer is None or dag.buffers[buffer].kind != "input" or dag.buffers[buffer].constant:
        return Derivation()
    if dag.stages[name].instruction:
        return Derivation()
    if operands.reads_per_element(dag, name, buffer) < config.min_pack_reuse:
        return Derivation()
    if dag.buffers[buffer].num_bytes < config.min_pack_bytes:
        return Derivation()
    return Derivation((_copied(state, buffer),))


def transpose_operand(state: State, context: RuleContext[Hardware]) -> Derivation:
    """Copies and transposes an operand that is not contiguous along the vectorised axis.

    Otherwise each of its vectors is gathered element by element, once per reuse. If both axes
    consist of whole vectors, the copy may load squares of them and transpose these in registers.
    """
    name, dag, config = state.current, state.dag, context.config
    found = operands.transposed_operand(dag, name)
    if found is None or not predicates.has_data_reuse(dag, name) or dag.stages[name].instruction:
        return Derivation()
    buffer, order = found
    if dag.buffers[buffer].kind != "input" and not is_padded(dag, buffer):
        return Derivation()
    if operands.reads_per_element(dag, name, buffer) < config.min_transpose_reuse:
        return Derivation()
    copied = _copied(state, buffer, order)
    squares = _in_squares(copied, f"{name}.{buffer}.pack", context)
    return Derivation((squares or copied,))


def transpose_in_squares(state: State, context: RuleContext[Hardware]) -> Derivation:
    """Lets a stage that only transposes load squares and transpose them in registers, as a
    decision. The rule applies to stages inside the loops of another.
    """
    if locations_of(state).host.get(state.current) is None:
        return Derivation()
    squares = _in_squares(state, state.current, context)
    return Derivation() if squares is None else Derivation((squares.advance(),), exclusive=True)


def _in_squares(state: State, name: str, context: RuleContext[Hardware]) -> State | None:
    """`state` with squares of a transposing stage as a decision, if vectors fill both axes."""
    dag, stage = state.dag, state.dag.stages[name]
    item_bytes = dag.buffers[stage.output].item_bytes
    axes = operands.transposed_axes(dag, name)
    lanes = context.machine.lanes(item_bytes)
    if axes is None or item_bytes < context.config.min_shuffled_bytes:
        return None
    if any(stage.axes[axis].size % lanes for axis in axes):
        return None
    decisions = {
        axes[0]: category(f"{name}.square", name, (1, lanes)),
        axes[1]: category(f"{name}.vector", name, (lanes,)),
    }
    tile = RegisterTile(name, holes_of(dag, name, decisions))
    return state.add(tile, Transpose(name, lanes), decisions=tuple(decisions.values()))


def _copied(state: State, buffer: str, order: tuple[int, ...] = ()) -> State:
    """`state` with its current stage reading a copy of `buffer`, its dimensions in `order`."""
    return state.read_copied(buffer, f"{state.current}.{buffer}.pack", order)
