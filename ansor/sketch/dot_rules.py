"""The rule for instructions that add up groups of products (bf16 and int8 on CPUs).

Deviation: the paper knows no such instructions.
"""

from __future__ import annotations

from ansor.dag import predicates
from ansor.dag.dot_products import (
    DotOperands,
    dot_operands,
    is_narrow_operand,
    operand_dtypes,
)
from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import Buffer, Group
from ansor.program.decision import category
from ansor.program.dot_instructions import DOT_INSTRUCTIONS, DotInstruction
from ansor.program.steps import GroupedLayout, Interleave, RegisterTile
from ansor.sketch import tables
from ansor.sketch.rule import Derivation, RuleContext, holes_of
from ansor.sketch.state import State
from ansor.targets.cpu.machine import Hardware


def use_dot_instruction(state: State, context: RuleContext[Hardware]) -> Derivation:
    """Lets an instruction of the processor add up the products of a stage with data reuse.

    The operand that runs along the lanes is read in groups. A constant gets such a layout when the
    network is compiled, and any other operand is copied. The rule chooses the fastest instruction
    that is exact for the values. Plain multiply-adds are no alternative, because they have at most
    half the rate.
    """
    name, dag = state.current, state.dag
    dtypes = operand_dtypes(dag, name)
    if dtypes is None or not predicates.has_data_reuse(dag, name):
        return Derivation()
    for instruction in DOT_INSTRUCTIONS:
        if instruction.takes(dtypes) and _is_usable(instruction, dag, name, context.machine):
            operands = dot_operands(dag, name, instruction.elements)
            if operands is not None:
                made = _grouped(state, instruction, operands, context)
                return Derivation((made,), exclusive=True)
    return Derivation(exclusive=True)


def _is_usable(instruction: DotInstruction, dag: ComputeDAG, name: str, hardware: Hardware) -> bool:
    """Whether a machine has an instruction, and it is exact for the operands of a stage."""
    if hardware.dot_unit(instruction.name) is None:
        return False
    return not instruction.narrow or is_narrow_operand(dag, name, instruction.operands[1])


def _grouped(
    state: State, instruction: DotInstruction, operands: DotOperands, context: RuleContext[Hardware]
) -> State:
    """`state` with the instruction, and with the operand of the lanes in groups."""
    stage = state.dag.stages[state.current]
    buffer = state.dag.buffers[stage.reads[operands.lanes].buffer]
    made = state.dot_products(operands.axis, instruction.elements, instruction.name)
    group = Group(operands.dim, instruction.elements)
    along = stage.reads[operands.lanes].indices[-1]
    if buffer.constant and along is not None and along.single_axis == stage.spatial[-1]:
        return _packed(made, buffer, group, context)
    order = _order(state, operands)
    copy = f"{state.current}.{buffer.name}.pack"
    copied = made.read_grouped(buffer.name, copy, order, group)
    if order[-1] < len(order) - 1:
        return copied
    return _interleaved(copied, copy, group, context.machine)


def _packed(state: State, buffer: Buffer, group: Group, context: RuleContext[Hardware]) -> State:
    """`state` with a constant in groups, as a decision on the width of its panels."""
    name, dag = state.current, state.dag
    hole = f"{name}.{buffer.name}.packed"
    widths = tables.group_widths(dag, name, buffer, group, context.machine, context.config)
    tiles = tables.axis_hole(dag, name, dag.stages[name].spatial[-1])
    step = GroupedLayout(name, buffer.name, hole, group.dim, group.elements, tiles=tiles)
    return state.add(step, decisions=(category(hole, name, widths),))


def _interleaved(state: State, copy: str, group: Group, hardware: Hardware) -> State:
    """`state` with a copy that loads rows and interleaves them, one register at a time."""
    dag, elements = state.dag, group.elements
    *_, element, last = dag.stages[copy].spatial
    lanes = hardware.lanes(dag.buffers[copy].item_bytes * elements)
    decisions = {
        element: category(f"{copy}.element", copy, (elements,)),
        last: category(f"{copy}.vector", copy, (lanes,)),
    }
    tile = RegisterTile(copy, holes_of(dag, copy, decisions))
    step = Interleave(copy, lanes, rows=elements)
    return state.add(tile, step, decisions=tuple(decisions.values()))


def _order(state: State, operands: DotOperands) -> tuple[int, ...]:
    """The dimensions of the lanes' operand; the dimension along the lanes comes last."""
    stage = state.dag.stages[state.current]
    indices = stage.reads[operands.lanes].indices
    last = next(d for d, i in enumerate(indices) if i and i.single_axis == stage.spatial[-1])
    return (*(d for d in range(len(indices)) if d != last), last)
