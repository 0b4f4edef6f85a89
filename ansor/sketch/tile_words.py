"""The axes along which the words of an instruction on tiles are contiguous in memory."""

from __future__ import annotations

from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import Access
from ansor.program.decision import divisors
from ansor.program.tile_instructions import TILE_WORDS


def word_axes(dag: ComputeDAG, name: str, words: int) -> dict[int, int]:
    """The axes with the words of an instruction, outermost first, and the number of words of each.

    If one axis has too few words, the next axis in memory follows. An example are the columns of a
    kernel with few channels.

    Args:
        name: of the stage, which adds up groups.
        words: number of the reduction axis that counts groups.
    """
    stage = dag.stages[name]
    axis, most, found = words, TILE_WORDS, dict[int, int]()
    while True:
        extent = stage.axes[axis].size
        found[axis] = max(d for d in divisors(extent) if d <= most)
        most //= found[axis]
        whole = found[axis] == extent
        following = [a for a in stage.reduce if a not in found and _follow(dag, name, a, axis)]
        if not whole or most < 2 or not following:
            break
        axis = following[0]
    return {a: size for a, size in reversed(found.items()) if size > 1 or a == words}


def _follow(dag: ComputeDAG, name: str, axis: int, inner: int) -> bool:
    """Whether a step of `axis` continues behind the last element of `inner`, in both operands."""
    stage = dag.stages[name]
    extent = stage.axes[inner].size
    return all(_is_next(dag, read, axis, (inner, extent)) for read in stage.reads)


def _is_next(dag: ComputeDAG, read: Access, axis: int, inner: tuple[int, int]) -> bool:
    """Whether an axis moves the dimension before the dimension that an inner axis fills."""
    number, extent = inner
    indices, shape = read.group_indices, dag.buffers[read.buffer].shape
    for dim in range(1, len(indices)):
        index, before = indices[dim], indices[dim - 1]
        size = shape[dim]
        assert isinstance(size, int)
        if index is not None and index.single_axis == number and size == extent * read.reach(dim):
            return before is not None and (axis, 1) in before.terms
    return False
