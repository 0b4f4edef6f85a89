"""Stages of a function by their effect on the precision of their operands."""

from __future__ import annotations

from collections.abc import Collection

from ansor.dag.contraction import contraction
from ansor.dag.edit import is_table
from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import Stage

WIDE = "float32"  # what is computed in


def products_of(dag: ComputeDAG) -> dict[str, frozenset[str]]:
    """The stages that are products of matrices in float32, each with the buffers it multiplies.

    A product with a table of constants is a transform.
    """
    found = {}
    tables = {stage.output for stage in dag.stages.values() if is_table(stage)}
    for name, stage in dag.stages.items():
        operands = frozenset(read.buffer for read in stage.reads)
        if operands & tables:
            continue
        wide = all(dag.buffers[buffer].dtype == WIDE for buffer in operands)
        if wide and contraction(dag, name) is not None:
            found[name] = operands
    return found


def is_exact(stage: Stage) -> bool:
    """Whether a stage only selects among values that it reads: a copy, a maximum or a minimum.

    Rounding its operands and its result is the same as rounding only its result.
    """
    ops = stage.ops
    arithmetic = ops.float_add or ops.float_mul or ops.float_div or ops.float_special
    return not arithmetic and not (ops.float_cmp and ops.select)


def copied_to(dag: ComputeDAG, buffers: Collection[str]) -> set[str]:
    """The buffers themselves, and those that exact stages make them of."""
    found = set(buffers)
    for name in reversed(dag.order):
        stage = dag.stages[name]
        if stage.output in found and is_exact(stage):
            found |= {read.buffer for read in stage.reads}
    return found
