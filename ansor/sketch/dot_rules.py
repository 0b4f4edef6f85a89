"""The rule for instructions that add up groups of products (bf16 and int8 on CPUs).

Deviation: the paper knows no such instructions.
"""

from __future__ import annotations

from ansor.dag import predicates
from ansor.dag.dot_products import DotOperands, dot_operands, operand_dtypes
from ansor.dag.stage import Group
from ansor.program.dot_instructions import DOT_INSTRUCTIONS, DotInstruction
from ansor.sketch.rule import Derivation, RuleContext
from ansor.sketch.state import State
from ansor.targets.cpu.machine import Hardware


def use_dot_instruction(state: State, context: RuleContext[Hardware]) -> Derivation:
    """Lets an instruction of the processor add up the products of a stage with data reuse.

    The operand that runs along the lanes is read in groups: a constant gets such a layout when the
    network is compiled, and another operand is copied. Plain multiply-adds are no alternative,
    because they have at most half the rate.
    """
    name, dag = state.current, state.dag
    dtypes = operand_dtypes(dag, name)
    if dtypes is None or not predicates.has_data_reuse(dag, name):
        return Derivation()
    states = []
    for instruction in DOT_INSTRUCTIONS:
        if instruction.takes(dtypes) and context.machine.dot_unit(instruction.name) is not None:
            operands = dot_operands(dag, name, instruction.elements)
            if operands is not None:
                states.append(_grouped(state, instruction, operands))
    return Derivation(tuple(states), exclusive=True)


def _grouped(state: State, instruction: DotInstruction, operands: DotOperands) -> State:
    """`state` with the instruction, and with the operand of the lanes in groups."""
    stage = state.dag.stages[state.current]
    buffer = state.dag.buffers[stage.reads[operands.lanes].buffer]
    made = state.dot_products(operands.axis, instruction.elements, instruction.name)
    along = stage.reads[operands.lanes].indices[-1]
    if buffer.constant and along is not None and along.single_axis == stage.spatial[-1]:
        return made  # its layout is a decision of the tiles
    order = _order(state, operands)
    copy = f"{state.current}.{buffer.name}.pack"
    return made.read_grouped(buffer.name, copy, order, Group(operands.dim, instruction.elements))


def _order(state: State, operands: DotOperands) -> tuple[int, ...]:
    """The dimensions of the lanes' operand with the one last that the lanes run along."""
    stage = state.dag.stages[state.current]
    indices = stage.reads[operands.lanes].indices
    last = next(d for d, i in enumerate(indices) if i and i.single_axis == stage.spatial[-1])
    return (*(d for d in range(len(indices)) if d != last), last)
