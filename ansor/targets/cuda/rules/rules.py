"""The derivation rules for GPUs (Ansor §4.1, with the GPU's tile structure).

A root stage is one kernel. A stage with data reuse is tiled for blocks, virtual threads and
threads. Its operands are fetched to shared memory, and its result stays in registers. The threads
of a block share a reduction with few outputs. In all other stages, a thread computes one element.
"""

from __future__ import annotations

import math

from ansor.dag import predicates
from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import HoleExtent, Stage
from ansor.program.decision import Decision, category, divisors, factorisations
from ansor.program.loop_structure import vector_axis
from ansor.program.steps import (
    BindRows,
    BindTiles,
    ComputePerThread,
    FuseConsumer,
    MultiLevelTile,
    Placed,
    ReduceInBlock,
    Store,
    StripMine,
)
from ansor.sketch import tables
from ansor.sketch.rule import Derivation, Rule, RuleContext
from ansor.sketch.rules import always_inline, skip
from ansor.sketch.state import State
from ansor.targets.cuda.machine import Gpu
from ansor.targets.cuda.rules.stages import cached, fetched, free_consumer, pipelined, rows_of
from ansor.targets.cuda.rules.tensor_cores import tile_for_tensor_cores


def placed(state: State, _: RuleContext[Gpu]) -> Derivation:
    """Skips a stage that a rule for its consumer has already placed."""
    name = state.current
    if any(isinstance(step, Placed) and step.stage == name for step in state.steps):
        return Derivation((state.advance(),), exclusive=True)
    return Derivation()


def inline_anything(state: State, _: RuleContext[Gpu]) -> Derivation:
    """Inlines all stages without a reduction, also conditions and special functions. Arithmetic is
    cheaper than a kernel that writes to memory and another one that reads it.

    Producers of a tiled stage stay: they are computed while they are fetched, once per block.
    """
    name, dag = state.current, state.dag
    if not predicates.can_inline(dag, name):
        return Derivation()
    return Derivation((state.advance().inlined(name),), exclusive=True)


def rfactor_for_blocks(state: State, context: RuleContext[Gpu]) -> Derivation:
    """Rule 6, for blocks: splits a long reduction of few outputs among the multiprocessors."""
    name, dag, config = state.current, state.dag, context.config.gpu
    stage, gpu = dag.stages[name], context.machine
    if stage.derived or stage.reducer is None or not predicates.has_static_axes(stage):
        return Derivation()
    space, axis = _size(stage, stage.spatial), max(stage.reduce, key=lambda a: stage.axes[a].size)
    extent = stage.axes[axis].size
    least = config.least_block_reduction**2
    if space * 2 > gpu.multiprocessors or _size(stage, stage.reduce) < least:
        return Derivation()
    rows = [(d, extent // d) for d in divisors(extent) if 1 < d <= config.max_rfactor]
    if not rows:
        return Derivation()
    return Derivation((state.factored(axis, rows),))


def reduce_in_block(state: State, context: RuleContext[Gpu]) -> Derivation:
    """Cross-thread reduction: a block computes one row of the consumer, and the reductions that
    the row needs, with all its threads."""
    name, dag, config = state.current, state.dag, context.config.gpu
    stage = dag.stages[name]
    if stage.reducer is None or stage.folded or not stage.spatial:
        return Derivation()
    least = config.least_block_reduction
    if predicates.has_static_axes(stage):
        few = config.block_reduction_fill * context.machine.multiprocessors
        few *= context.machine.threads_per_sm
        if _size(stage, stage.reduce) < least or _size(stage, stage.spatial) > few:
            return Derivation()
    hosted = state if _row_host(state, name) else cached(state)
    host = _row_host(hosted, name)
    if host is None:
        return Derivation()
    if host not in {s.stage for s in hosted.steps if isinstance(s, BindRows)}:
        hosted = _rows(hosted, host, len(hosted.dag.stages[name].spatial), context)
    # Reuse may make tiles the better choice.
    done = hosted.add(ReduceInBlock(name, host)).advance()
    return Derivation((done,), exclusive=not predicates.has_data_reuse(dag, name))


def tile_for_threads(state: State, context: RuleContext[Gpu]) -> Derivation:
    """Rules 3 to 5 on a GPU: tiles for blocks, virtual threads and threads. The result stays in
    registers until its consumer, or a copy, reads the tile. All threads of a block fetch operands
    to shared memory."""
    name = state.current
    stage = state.dag.stages[name]
    if not predicates.has_data_reuse(state.dag, name) or not predicates.has_static_axes(stage):
        return Derivation()
    if len(stage.writes) != 1:
        return Derivation()
    state = state if free_consumer(state, name) else cached(state)
    consumer = free_consumer(state, name)
    assert consumer is not None
    config = context.config.gpu
    decisions = _tiles(state.dag, name, context)
    holes = tuple(decisions[a].name if a in decisions else "" for a in range(len(stage.axes)))
    state = state.add(
        MultiLevelTile(name, config.tile_structure, holes),
        BindTiles(name),
        FuseConsumer(name, consumer, config.fuse_level),
        Store(name, "local"),
        decisions=tuple(decisions.values()),
    )
    done = pipelined(fetched(state, context), context)
    return Derivation((done.advance(),), exclusive=True)


def reduce_per_thread(state: State, _: RuleContext[Gpu]) -> Derivation:
    """Any other reduction: each thread adds up the elements for its part of the consumer, in
    registers."""
    name = state.current
    stage = state.dag.stages[name]
    if not stage.reduce or len(stage.writes) != 1 or not stage.spatial:
        return Derivation()
    state = state if free_consumer(state, name) else cached(state)
    consumer = free_consumer(state, name)
    if consumer is None:
        return Derivation()
    done = state.add(ComputePerThread(name, consumer), Store(name, "local"))
    return Derivation((done.advance(),), exclusive=True)


# The order is part of the method, as for CPUs.
GPU_RULES: tuple[Rule[Gpu], ...] = (
    placed,  # first: fetched stages are not inlined
    always_inline,
    inline_anything,  # after the consumers, whose fetched operands are placed
    rfactor_for_blocks,  # an alternative; its parts are visited again
    reduce_in_block,  # an alternative if there is reuse
    tile_for_tensor_cores,  # an alternative: small products are faster without
    tile_for_threads,
    reduce_per_thread,
    skip,
)


def _size(stage: Stage, axes: tuple[int, ...]) -> int:
    return math.prod(stage.axes[a].size for a in axes)


def _row_host(state: State, name: str) -> str | None:
    """The single stage whose rows read a reduction, if the reduction may be computed there."""
    dag, stage = state.dag, state.dag.stages[name]
    homes = {s.stage: s.host for s in state.steps if isinstance(s, ReduceInBlock)}
    roots = {homes.get(consumer, consumer) for consumer in dag.consumers(name)}
    if len(roots) != 1 or dag.is_output(name) or len(stage.writes) != 1:
        return None
    (host,) = roots
    busy = (
        state.fused | state.tiled | {s.host for s in state.steps if isinstance(s, ComputePerThread)}
    )
    if dag.stages[host].reduce or host in busy:
        return None
    rows = len(stage.spatial)
    if any(step.stage == host and step.rows != rows for step in rows_of(state)):
        return None
    reads = [
        read.axes
        for consumer in dag.consumers(name)
        for read in dag.stages[consumer].reads
        if read.buffer == stage.output
    ]
    leading = dag.stages[host].spatial[:rows]
    return host if all(axes == tuple(range(rows)) == leading for axes in reads) else None


def _rows(state: State, host: str, rows: int, context: RuleContext[Gpu]) -> State:
    """`state` with `host` computed row by row; the threads share a row in vectors."""
    stage, config = state.dag.stages[host], context.config.gpu
    axis = vector_axis(stage)
    assert axis is not None
    threads = category(f"{host}.threads", host, config.threads)
    bind = BindRows(host, rows, threads.name)
    extent = stage.axes[axis].extent
    if isinstance(extent, HoleExtent):
        return state.add(StripMine(host, axis, None), bind, decisions=(threads,))
    widths = config.vector_widths if len(stage.spatial) > rows else (1,)
    vector = tables.vectors(host, extent, widths)
    strip = StripMine(host, axis, vector.name)
    return state.add(strip, bind, decisions=(vector, threads))


def _tiles(dag: ComputeDAG, name: str, context: RuleContext[Gpu]) -> dict[int, Decision]:
    """Factors of every axis, within the limits of a block and a thread."""
    config, gpu = context.config.gpu, context.machine
    stage, found = dag.stages[name], {}
    for number, axis in enumerate(stage.axes):
        if number in stage.folded:
            continue
        table = factorisations(axis.size, config.tile_structure.count("R" if axis.reduce else "S"))
        if not axis.reduce:
            _, vthreads, threads, outer, inner = table.T
            fits = (vthreads <= config.max_vthreads) & (threads <= gpu.threads_per_block)
            table = table[fits & (outer * inner <= config.max_innermost_factor)]
        found[number] = Decision(f"{name}.{axis.name}", name, table)
    return found
