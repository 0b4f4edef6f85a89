"""The work that every program of a definition does, whatever its loops: a bound of its time.

Only work that no program can avoid counts. Programs skip steps on padding and products with zeros
of a table of constants, and compute no element that nobody reads.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ansor.dag.graph import ComputeDAG
from ansor.dag.padding import padded_dimensions
from ansor.dag.stage import Access, Stage, axes_of_access


@dataclass(frozen=True)
class LeastWork:
    """The least work of a run of any program.

    Attributes:
        products: by the bytes of an operand's element, multiplications and additions of sums of
            products.
        bytes: of inputs that are read as a whole, and of outputs.
    """

    products: Mapping[int, float]
    bytes: int


def least_work(dag: ComputeDAG) -> LeastWork:
    """The work of a definition that no program can avoid."""
    needed = _needed(dag)
    products: Counter[int] = Counter()
    for name in needed:
        operations = _products(dag, name)
        if operations:
            narrowest = min(dag.buffers[r.buffer].item_bytes for r in dag.stages[name].reads)
            products[narrowest] += operations
    moved = {
        access.buffer
        for name in needed
        for access in (*dag.stages[name].reads, *dag.stages[name].writes)
        if dag.buffers[access.buffer].kind != "intermediate"
        and _covers(dag, dag.stages[name], access)
    }
    return LeastWork(dict(products), sum(dag.buffers[name].num_bytes for name in moved))


def _needed(dag: ComputeDAG) -> list[str]:
    """Stages whose every element the result depends on."""
    found: list[str] = []
    for name in reversed(dag.order):
        readers = [dag.stages[c] for c in dag.consumers(name) if c in found]
        is_read = any(
            read.buffer == dag.stages[name].output and _covers(dag, reader, read)
            for reader in readers
            for read in reader.reads
        )
        if dag.is_output(name) or is_read:
            found.append(name)
    return found


def _covers(dag: ComputeDAG, stage: Stage, access: Access) -> bool:
    """Whether a stage reads or writes each element of a buffer, whatever the values are."""
    shape = dag.buffers[access.buffer].shape
    axes = [axis for axis in access.axes if axis is not None]
    in_order = len(axes) == len(shape) == len(set(axes)) and max(axes, default=-1) < len(stage.axes)
    return (
        in_order
        and not stage.has_branch
        and all(stage.axes[axis].size == size for axis, size in zip(axes, shape, strict=True))
    )


def _products(dag: ComputeDAG, name: str) -> int:
    """Operations of a stage that sums up products, without steps on padding."""
    stage = dag.stages[name]
    ops = stage.ops
    multiplies = ops.float_mul + ops.int_mul == ops.float_add + ops.int_add == 1
    if stage.reducer != "Add" or not multiplies or stage.has_branch or stage.folded:
        return 0
    read = set().union(*map(axes_of_access, stage.reads))
    if len(stage.reads) != 2 or not set(range(len(stage.axes))) <= read:
        return 0
    shares = {(p.buffer, p.dim): p.share for p in padded_dimensions(dag, name)}
    steps = math.prod(axis.size for axis in stage.axes) * math.prod(shares.values())
    return int(2 * steps * stage.density)
