"""The kernels of a GPU program, by arithmetic on the nest: grid, threads, memories, registers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.program.loop_structure import enclosing_loops, num_leading, padded_row, structure_of
from ansor.program.nest import LoopNest, StageNest
from ansor.program.roles import THREAD_LEVEL, WARP
from ansor.program.steps import (
    BindRows,
    BindTiles,
    BindWarps,
    CooperativeFetch,
    Placed,
    ReduceInBlock,
)

Counts = npt.NDArray[np.int64]  # [P]

_ALIGNMENT = 64  # bytes, of each array in shared memory; TVM's generated code
_GATHER_REGISTERS = 4  # address and condition of an unrolled, conditional load; ptxas
_BASE_REGISTERS = 26  # addresses, indices and others of any kernel; fitted on ptxas' counts


@dataclass(frozen=True, eq=False)
class Kernel:
    """One root stage with all stages inside its loops; every array is `[P]`.

    Attributes:
        root: its name.
        members: all its stages.
        blocks: of the grid.
        threads: of a block.
        vthreads: virtual threads of each thread, which does their work in turn.
        shared_bytes: of shared memory that a block declares.
        registers: of a thread, estimated.
        ahead: rounds that are fetched ahead of the current one.
    """

    root: str
    members: tuple[str, ...]
    blocks: Counts
    threads: Counts
    vthreads: Counts
    shared_bytes: Counts
    registers: Counts
    ahead: Counts


def kernels(nest: LoopNest) -> list[Kernel]:
    """The kernels of all bound root stages, in the order of the graph."""
    roles = nest.population.sketch.roles
    return [_kernel(nest, name) for name in nest.population.sketch.dag.order if name in roles.bound]


def _kernel(nest: LoopNest, root: str) -> Kernel:
    dag, roles = nest.population.sketch.dag, nest.population.sketch.roles
    members = (root, *(name for name in dag.order if roles.host.get(name) == root))
    blocks, vthreads, threads = _grid(nest, root)
    shared = np.zeros(nest.size, dtype=np.int64)
    for name in members:
        if roles.scope.get(name, "").startswith("shared"):
            shared += _shared_bytes(nest, name, threads)
    registers = _BASE_REGISTERS + sum(_results(nest, name, vthreads) for name in members)
    registers = registers + _operands(nest, root, vthreads)
    registers = registers + sum(_addresses(nest, name, threads) for name in members)
    ahead = rounds_ahead(nest, root)
    return Kernel(root, members, blocks, threads, vthreads, shared, registers, ahead)


def _grid(nest: LoopNest, root: str) -> tuple[Counts, Counts, Counts]:
    """Blocks, virtual threads and threads."""
    roles, stage = nest.population.sketch.roles, nest.stages[root]
    bound, count = roles.bound[root], num_leading(stage.stage)
    ones = np.ones(nest.size, dtype=np.int64)
    if isinstance(bound, BindTiles):
        levels = [_product(stage, level * count, (level + 1) * count) for level in range(3)]
        return levels[0], levels[1], levels[THREAD_LEVEL]
    if isinstance(bound, BindWarps):
        return _product(stage, 0, count), ones, WARP * _product(stage, count, 2 * count)
    threads = nest.population.values(bound.hole)[:, 0].astype(np.int64)
    if isinstance(bound, BindRows):
        return _product(stage, 0, bound.rows), ones, threads
    return -(-_product(stage, 0, count) // threads), ones, threads


def _product(stage: StageNest, first: int, last: int) -> Counts:
    product: Counts = stage.extents[first:last].prod(axis=0, dtype=np.int64)
    return product


def points_from(stage: StageNest, first: int) -> Counts:
    """`[P]`: iterations of the spatial loops from number `first` on."""
    spatial = [i for i in range(first, len(stage.loops)) if not stage.loops[i].reduce]
    points: Counts = stage.extents[spatial].prod(axis=0, dtype=np.int64)
    return points


def own_iterations(stage: StageNest) -> Counts:
    """`[P]`: iterations of a stage's own loops in one iteration of its host's loops."""
    return _product(stage, stage.num_host, len(stage.loops))


def _shared_bytes(nest: LoopNest, name: str, threads: Counts) -> Counts:
    """`[P]`: bytes of a stage in shared memory. A reduction that threads share needs a partial
    result of each warp and the result as well, if there is more than one warp."""
    dag, stage = nest.population.sketch.dag, nest.stages[name]
    item_bytes = dag.buffers[stage.stage.output].item_bytes
    roles = nest.population.sketch.roles
    placed = roles.placed.get(name)
    if placed is None:  # the results of each warp's tile
        return _aligned(own_iterations(stage) * (threads // WARP) * item_bytes)
    if not isinstance(placed, ReduceInBlock):
        return _aligned(_fetched(nest, stage, placed, item_bytes) * item_bytes)
    kept = points_from(stage, stage.num_host)
    partial = _aligned(-(-threads // WARP) * item_bytes) + _ALIGNMENT
    return _aligned(kept * item_bytes) + np.where(threads > WARP, partial, 0)


def _fetched(nest: LoopNest, stage: StageNest, placed: Placed, item_bytes: int) -> Counts:
    """Elements of shared memory that a fetch fills, or leaves between its rows."""
    elements = own_iterations(stage) * _buffers(nest, placed.host)
    if not isinstance(placed, CooperativeFetch) or len(stage.stage.axes) < 2:
        return elements
    last = stage.loops[-1].axis
    along = [i for i in range(stage.num_host, len(stage.loops)) if stage.loops[i].axis == last]
    row: Counts = stage.extents[along].prod(axis=0, dtype=np.int64)
    pad = nest.population.values(placed.pad)[:, 0].astype(np.int64)
    return elements // row * padded_row(row, item_bytes, pad)


def rounds_ahead(nest: LoopNest, root: str) -> Counts:
    """`[P]`: rounds of a tiled stage's outermost reduction loops that its operands are fetched
    ahead."""
    hole = nest.population.sketch.roles.pipelined.get(root)
    if hole is None:
        return np.zeros(nest.size, dtype=np.int64)
    ahead = nest.population.values(hole)[:, 0].astype(np.int64)
    stage, shape = nest.stages[root], nest.population.sketch.roles.shape[root]
    inside = enclosing_loops(stage.stage, structure_of(shape))
    rounds = _product(stage, inside - len(stage.stage.reduce), inside)
    return np.where(ahead < rounds, ahead, 0)


def _buffers(nest: LoopNest, root: str) -> Counts:
    """`[P]`: buffers in shared memory for the fetches of a tiled stage."""
    return rounds_ahead(nest, root) + 1


def _aligned(size: Counts) -> Counts:
    """Bytes of an array, rounded up to the alignment."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _results(nest: LoopNest, name: str, vthreads: Counts) -> Counts:
    """Registers of a stage's results before they are written to memory."""
    sketch, stage = nest.population.sketch, nest.stages[name]
    if sketch.roles.scope.get(name, "").startswith("wmma"):
        return _fragments(nest, name)
    if sketch.roles.scope.get(name) != "local":
        return np.zeros(nest.size, dtype=np.int64)
    items = max(1, sketch.dag.buffers[stage.stage.output].item_bytes // 4)
    if name in sketch.roles.bound:
        return vthreads * points_from(stage, 3 * num_leading(stage.stage)) * items
    return points_from(stage, stage.num_host) * items


def _fragments(nest: LoopNest, name: str) -> Counts:
    """Registers of a warp's tiles, spread over its threads."""
    stage, sketch = nest.stages[name], nest.population.sketch
    if name in sketch.roles.bound:  # accumulators
        elements = points_from(stage, 2 * num_leading(stage.stage))
    else:
        elements = 2 * own_iterations(stage)  # operands are held twice
    item_bytes = sketch.dag.buffers[stage.stage.output].item_bytes
    return -(-elements * item_bytes // (4 * WARP))


def gathers(nest: LoopNest, name: str, threads: Counts) -> Counts:
    """`[P]`: loads of a thread at computed addresses when it fetches a stage, such as a matrix that
    holds the windows of an image; 0 if addresses are affine."""
    stage, placed = nest.stages[name], nest.population.sketch.roles.placed.get(name)
    plain = all(read.is_affine for read in stage.stage.reads)
    if not isinstance(placed, CooperativeFetch) or plain:
        return np.zeros(nest.size, dtype=np.int64)
    width = stage.extents[-1] if stage.loops[-1].part else np.ones_like(threads)
    turns: Counts = -(-own_iterations(stage) // (width * threads))
    return turns


def _addresses(nest: LoopNest, name: str, threads: Counts) -> Counts:
    """Registers for the addresses and conditions of loads whose turns are unrolled."""
    turns = gathers(nest, name, threads)
    return np.where(turns <= nest.stages[name].unroll_most, _GATHER_REGISTERS * turns, 0)


def _operands(nest: LoopNest, root: str, vthreads: Counts) -> Counts:
    """Registers for operands: of one step of the reduction, each once.

    The compiler loads operands when they are needed, so that the larger side stays in registers.
    """
    stage, roles = nest.stages[root], nest.population.sketch.roles
    if not isinstance(roles.bound[root], BindTiles):
        return np.zeros(nest.size, dtype=np.int64)
    count = num_leading(stage.stage)
    inner = list(range(count, 2 * count))
    inner += [i for i in range(3 * count, len(stage.loops)) if not stage.loops[i].reduce]
    total = np.zeros(nest.size, dtype=np.int64)
    for read in stage.stage.reads:
        needed = np.ones(nest.size, dtype=np.int64)
        for index in read.indices:
            moves = stage.coefficients(index)
            for loop in inner:
                if loop in moves:
                    needed = needed * np.where(moves[loop] != 0, stage.extents[loop], 1)
        total = total + needed
    return total
