"""The derivation rules for CPUs (Ansor §4.1, Table 1).

A rule looks at the current stage of a state and returns the states it derives: none where it does
not apply. `exclusive` says that no later rule may try the same stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ansor.config import SketchConfig
from ansor.dag import chains, edit, operands, predicates
from ansor.dag.graph import ComputeDAG
from ansor.hardware.cpu import Hardware
from ansor.hardware.gpu import Gpu, Machine
from ansor.program.decision import Decision, category, divisors
from ansor.program.location import Locations
from ansor.program.roles import Roles
from ansor.program.steps import (
    FuseConsumer,
    LayoutRewrite,
    MoveAxis,
    MultiLevelTile,
    RegisterTile,
    SplitAxis,
)
from ansor.sketch import tables
from ansor.sketch.state import State


@dataclass(frozen=True)
class Context:
    """What rules may look at beside the state."""

    machine: Machine
    config: SketchConfig

    @property
    def hardware(self) -> Hardware:
        """The CPU, for its rules."""
        assert isinstance(self.machine, Hardware)
        return self.machine

    @property
    def gpu(self) -> Gpu:
        """The GPU, for its rules."""
        assert isinstance(self.machine, Gpu)
        return self.machine


@dataclass(frozen=True)
class Derived:
    """What a rule made of a state; no states where it does not apply."""

    states: tuple[State, ...] = ()
    exclusive: bool = False


Rule = Callable[[State, Context], Derived]


def always_inline(state: State, _: Context) -> Derived:
    """Rule 2: a strictly inlinable stage disappears into its consumers."""
    name = state.current
    if not predicates.is_inlinable(state.dag, name) or _completes_for_reuse(state.dag, name):
        return Derived()
    return Derived((state.advance().inlined(name),), exclusive=True)


def _completes_for_reuse(dag: ComputeDAG, name: str) -> bool:
    """Whether a stage ends what a reduction began, and another reduction reads it repeatedly.

    Deviation: such a stage (bias and activation between a depthwise and a pointwise convolution)
    is computed where the first reduction is; inlined into the second, once for each of its filters.
    """
    repeated = any(
        predicates.has_data_reuse(dag, c) and operands.reads_per_element(dag, c, name) > 1
        for c in dag.consumers(name)
    )
    return repeated and dag.stages[name].ops.flops > 0 and _completes(dag, name)


def _completes(dag: ComputeDAG, name: str) -> bool:
    """Whether a stage is an elementwise function of a reduction with reuse, over several stages or
    at once."""
    for producer in dag.producers(name):
        if predicates.fusible_consumer(dag, producer) == name and (
            predicates.has_data_reuse(dag, producer)
            or (not dag.stages[producer].reduce and _completes(dag, producer))
        ):
            return True
    return False


def inline_padding(state: State, context: Context) -> Derived:
    """Inlines a branch (padding) into its consumers, as an alternative.

    Where each element is read a few times only, the condition costs less than the buffer; inside
    a convolution over channels it would be evaluated once per multiplication.
    """
    name, dag, config = state.current, state.dag, context.config
    if not dag.stages[name].has_branch or not predicates.can_inline(dag, name):
        return Derived()
    for consumer in set(dag.consumers(name)) & state.tiled:
        if operands.reads_per_element(dag, consumer, name) > config.max_branch_repeats:
            return Derived()
        if not operands.is_whole_along_vectors(dag, consumer, name):
            return Derived()
    return Derived((state.advance().inlined(name),))


def rfactor_for_threads(state: State, context: Context) -> Derived:
    """Rule 6, outer factor: split a long reduction with little around it among the cores."""
    name, dag, config = state.current, state.dag, context.config
    cores = context.hardware.cores
    if not predicates.needs_more_parallelism(dag, name, cores, config.rfactor_spatial_per_core):
        return Derived()
    stage, lanes = dag.stages[name], operands.contiguous_reduction(dag, name)
    if stage.derived:
        return Derived()
    others = [axis for axis in stage.reduce if axis != lanes] or stage.reduce
    axis = max(others, key=lambda a: stage.axes[a].size)
    extent, most = stage.axes[axis].size, cores * config.rfactor_max_per_core
    return _factored(state, axis, [(d, extent // d) for d in divisors(extent) if 1 < d <= most])


def rfactor_for_lanes(state: State, context: Context) -> Derived:
    """Rule 6, inner factor: split a reduction that runs along memory into vector lanes."""
    name, dag = state.current, state.dag
    axis = operands.contiguous_reduction(dag, name)
    if axis is None or predicates.has_data_reuse(dag, name):
        return Derived()
    item_bytes = dag.buffers[dag.stages[name].output].item_bytes
    most = context.config.max_vector_bytes // item_bytes
    extent = dag.stages[name].axes[axis].size
    rows = [(extent // d, d) for d in divisors(extent) if 1 < d <= most]
    return _factored(state, axis, rows, inner=True)


def _factored(state: State, axis: int, rows: list[tuple[int, int]], inner: bool = False) -> Derived:
    """`state` with `axis` of its current stage split as one of `rows`.

    The partial stage is visited next, so that a sum over everything gets threads and lanes.
    """
    return Derived((state.factored(axis, rows, inner).advance(),) if rows else ())


def cache_write(state: State, _: Context) -> Derived:
    """Rule 5: an output with data reuse and nothing to fuse gets a cache of its own first."""
    name, dag = state.current, state.dag
    if not dag.is_output(name) or not predicates.has_data_reuse(dag, name):
        return Derived()
    if len(dag.stages[name].writes) != 1 or name in state.tiled:
        return Derived()
    return Derived((state.write_cached(f"{name}.cache"),))


def choose_vector_axis(state: State, context: Context) -> Derived:
    """Vectorises another axis than the last where that one does not fill vectors.

    Beyond the paper: the rows of an image whose channels come first may be too short, or read with
    a stride and so gathered; its filters are neither, once their operand is transposed.
    """
    name, dag = state.current, state.dag
    consumer = predicates.fusible_consumer(dag, name)
    if consumer is None or not predicates.has_data_reuse(dag, name) or consumer in state.tiled:
        return Derived()
    if any(isinstance(step, MoveAxis) and step.stage == name for step in state.steps):
        return Derived()
    stage = dag.stages[name]
    lanes = context.hardware.lanes(dag.buffers[stage.output].item_bytes)
    axis = operands.other_vector_axis(dag, name, lanes)
    jumps = operands.jumps_along_vectors(dag, name)
    if axis is None or not (jumps or tables.leaves_lanes_idle(stage, lanes)):
        return Derived()
    moved = replace(state, dag=edit.move_axis(dag, name, axis, consumer))
    return Derived((moved.add(MoveAxis(name, axis, consumer)),), exclusive=jumps)


def pack_operand(state: State, context: Context) -> Derived:
    """Copies the operand that runs along the vectorised axis, to be packed tile by tile.

    Beyond the paper: what the innermost loops read lies then in one run of memory. Only for
    operands that are read often and span more than the second cache.
    """
    name, dag, config = state.current, state.dag, context.config
    if not predicates.has_data_reuse(dag, name):
        return Derived()
    buffer = operands.vector_operand(dag, name)
    if buffer is None or dag.buffers[buffer].kind != "input" or dag.buffers[buffer].constant:
        return Derived()
    if operands.reuse_of(dag, name, buffer) < config.min_pack_reuse:
        return Derived()
    if dag.buffers[buffer].num_bytes < config.min_pack_bytes:
        return Derived()
    return Derived((_copied(state, buffer),))


def transpose_operand(state: State, context: Context) -> Derived:
    """Copies an operand that the vectorised axis runs through against memory, transposed.

    Beyond the paper: otherwise each of its vectors is gathered element by element, once per reuse.
    """
    name, dag, config = state.current, state.dag, context.config
    found = operands.transposed_operand(dag, name)
    if found is None or not predicates.has_data_reuse(dag, name):
        return Derived()
    buffer, order = found
    if dag.buffers[buffer].kind != "input":
        return Derived()
    if operands.reuse_of(dag, name, buffer) < config.min_transpose_reuse:
        return Derived()
    return Derived((_copied(state, buffer, order),))


def tile_with_fusion(state: State, context: Context) -> Derived:
    """Rule 4: tile the stage and compute its elementwise consumer inside the tiles."""
    name, dag = state.current, state.dag
    consumer = predicates.fusible_consumer(dag, name)
    if consumer is None or not predicates.has_data_reuse(dag, name):
        return Derived()
    if consumer in state.tiled or consumer in state.fused:
        return Derived()
    split = _phased(state, consumer)
    states = tuple(
        _tiled(split, context, consumer if _may_have_tails(context, level) else None)
        .add(FuseConsumer(name, consumer, level))
        .advance()
        for level in context.config.fuse_levels
    )
    # A cache whose copy is not fused would be written and read back for nothing. Where several
    # stages are costly, choices multiply; those that fuse nothing are the ones to do without.
    several = sum(predicates.has_data_reuse(dag, stage) for stage in dag.order) > 1
    return Derived(states, exclusive=several or consumer.endswith(".cache"))


def tile_host(state: State, context: Context) -> Derived:
    """Tiles the end of a chain, so that its producers can be computed tile by tile inside it.

    Beyond the paper, whose fusion reaches one elementwise consumer.
    """
    name, dag, config = state.current, state.dag, context.config
    if not chains.ends_chain(dag, name) or not predicates.has_static_axes(dag.stages[name]):
        return Derived()
    if _locations(state).host.get(name) is not None:
        return Derived()
    decisions = tables.host_tiles(dag, name, context.config)
    step = MultiLevelTile(name, config.host_structure, _holes(dag, name, decisions))
    return Derived((state.add(step, decisions=tuple(decisions.values())).advance(),))


def register_tile(state: State, context: Context) -> Derived:
    """Tiles a stage for registers only and computes it inside the loops of a tiled one, and its
    elementwise consumer with each tile.

    Beyond the paper; how deep is a decision, as for any stage without a nest of its own.
    """
    name, dag = state.current, state.dag
    if not predicates.has_data_reuse(dag, name) or not predicates.has_static_axes(dag.stages[name]):
        return Derived()
    host = _locations(state).host.get(name)
    if host is None or host not in state.tiled:
        return Derived()
    decisions = tables.register_tiles(dag, name, context.hardware, context.config)
    step = RegisterTile(name, _holes(dag, name, decisions))
    done = state.add(step, decisions=tuple(decisions.values())).advance()
    if (consumer := _finishes(state, name)) is not None:
        done = done.add(FuseConsumer(name, consumer, 1))
    # The end of a chain is tiled for nothing but its producers.
    return Derived((done,), exclusive=chains.ends_chain(dag, host))


def tile(state: State, context: Context) -> Derived:
    """Rule 3: multi-level tiling of a stage with data reuse."""
    name, dag = state.current, state.dag
    if not predicates.has_data_reuse(dag, name):
        return Derived()
    split = _phased(state, "") if dag.is_output(name) else state
    return Derived((_tiled(split, context).advance(),), exclusive=True)


def skip(state: State, _: Context) -> Derived:
    """Rule 1: leave the stage as it is."""
    return Derived((state.advance(),))


# The order is part of the method: a rule may be exclusive, and what follows then never sees the
# stage.
CPU_RULES: tuple[Rule, ...] = (
    always_inline,  # first: whatever is cheap to repeat vanishes before anything is tiled
    inline_padding,  # an alternative to a padding buffer; its location is searched otherwise
    rfactor_for_threads,  # before tiling: a factored reduction is not tiled
    rfactor_for_lanes,  # after threads: it also applies to the partial stage that they leave
    cache_write,  # forks the output; tiling then fuses the copy
    choose_vector_axis,  # before what looks at the vector's operand
    pack_operand,  # forks likewise; the copy is located by a decision
    transpose_operand,  # as well
    tile_host,  # forks the end of a chain of reductions
    register_tile,  # only inside a tiled host; a nest of its own is the alternative
    tile_with_fusion,  # before plain tiling, which it makes mostly useless
    tile,
    skip,  # last: always applies
)


def _copied(state: State, buffer: str, order: tuple[int, ...] = ()) -> State:
    """`state` with its current stage reading a copy of `buffer`, its dimensions in `order`."""
    return state.read_copied(buffer, f"{state.current}.{buffer}.pack", order)


def _locations(state: State) -> Locations:
    """Where the stages visited so far, and the current one, may be computed."""
    return Locations(state.dag, Roles(state.dag, state.steps))


def _holes(dag: ComputeDAG, name: str, decisions: Mapping[int, Decision]) -> tuple[str, ...]:
    axes = range(len(dag.stages[name].axes))
    return tuple(decisions[axis].name if axis in decisions else "" for axis in axes)


def _finishes(state: State, name: str) -> str | None:
    """The consumer of an attached stage that can be computed with each of its register tiles."""
    dag, consumer = state.dag, predicates.fusible_consumer(state.dag, name)
    if consumer is None or consumer in state.tiled or consumer in state.fused:
        return None
    others = {read.buffer for read in dag.stages[consumer].reads} - {dag.stages[name].output}
    inputs = all(dag.buffers[buffer].kind == "input" for buffer in others)
    return consumer if inputs and _locations(state).host.get(consumer) is not None else None


def _may_have_tails(context: Context, level: int) -> bool:
    """Whether a consumer fused at `level` takes over each tile before the next is begun."""
    return level == context.config.tile_structure.index("R")


def _phased(state: State, consumer: str) -> State:
    """`state` with two axes for each one of its current stage that runs through phases.

    Beyond the paper: points of one phase, which share their operands, can then form a tile.
    """
    name = state.current
    for axis, turn in reversed(operands.phases(state.dag, name).items()):
        dag = edit.split_axis(state.dag, name, axis, turn, consumer)
        state = replace(state, dag=dag).add(SplitAxis(name, axis, turn, consumer))
    return state


def _packed(state: State, context: Context) -> State:
    """`state` with the constant operand of its current stage packed, as a decision on the width.

    Beyond the paper's layout rewrite: the width is chosen freely, not given by the tiles.
    """
    name, dag = state.current, state.dag
    buffer = operands.vector_operand(dag, name)
    if buffer is None or not dag.buffers[buffer].constant:
        return state
    hole = f"{name}.{buffer}.packed"
    widths = tables.pack_widths(dag.buffers[buffer], context.hardware, context.config)
    step = LayoutRewrite(name, buffer, hole)
    return state.add(step, decisions=(category(hole, name, widths),))


def _tiled(state: State, context: Context, consumer: str | None = None) -> State:
    """`state` with its current stage tiled, and one decision per axis.

    With `consumer`, the stage that takes over each tile, tiles need not divide the axes.
    """
    state = _packed(state, context)
    name, config = state.current, context.config
    loose = tables.loose_axes(state.dag, name, consumer, context.hardware, config)
    decisions = tables.tiles(state.dag, name, loose, context.hardware, config)
    step = MultiLevelTile(name, config.tile_structure, _holes(state.dag, name, decisions))
    return state.add(step, decisions=tuple(decisions.values()))
