"""The derivation rules for CPUs (Ansor §4.1, Table 1), and the order in which they are tried.

Deviation: besides the paper's six rules there are `inline_padding` and the rules of `copy_rules`
and `chain_rules`, and rule 6 is two rules, because threads and vector lanes need different axes.
"""

from __future__ import annotations

from typing import Any

from ansor.dag import operands, predicates
from ansor.program.decision import category, divisors
from ansor.program.steps import FuseConsumer, LayoutRewrite, MultiLevelTile
from ansor.sketch import tables
from ansor.sketch.chain_rules import attach_register_tile, completes_for_reuse, tile_host
from ansor.sketch.copy_rules import (
    choose_vector_axis,
    pack_operand,
    phased,
    transpose_in_squares,
    transpose_operand,
)
from ansor.sketch.dot_rules import use_dot_instruction
from ansor.sketch.rule import Derivation, Rule, RuleContext, holes_of
from ansor.sketch.state import State
from ansor.sketch.tile_rules import use_tile_instruction
from ansor.targets.cpu.machine import Hardware


def always_inline(state: State, _: RuleContext[Any]) -> Derivation:
    """Rule 2: a strictly inlinable stage disappears into its consumers."""
    name = state.current
    if not predicates.is_inlinable(state.dag, name) or completes_for_reuse(state.dag, name):
        return Derivation()
    if predicates.feeds_instruction(state.dag, name):
        return Derivation()
    return Derivation((state.advance().inlined(name),), exclusive=True)


def inline_padding(state: State, context: RuleContext[Hardware]) -> Derivation:
    """Inlines a branch (padding) into its consumers. For a large buffer, this is an alternative.

    Deviation: the paper inlines no branch; it searches the place of the padded copy instead. If
    each element is read only a few times, the condition costs less than the buffer. Inside a
    convolution over channels, it would be evaluated for each multiplication.
    """
    name, dag, config = state.current, state.dag, context.config
    if not dag.stages[name].has_branch or not predicates.can_inline(dag, name):
        return Derivation()
    if predicates.feeds_instruction(dag, name):
        return Derivation()
    for consumer in set(dag.consumers(name)) & state.tiled:
        if (
            operands.reads_per_element(dag, consumer, dag.stages[name].output)
            > config.max_branch_repeats
        ):
            return Derivation()
        if not operands.is_whole_along_vectors(dag, consumer, name):
            return Derivation()
    share = dag.buffers[dag.stages[name].output].num_bytes / dag.num_bytes
    return Derivation((state.advance().inlined(name),), exclusive=share < config.min_padded_share)


def rfactor_for_threads(state: State, context: RuleContext[Hardware]) -> Derivation:
    """Rule 6, outer factor: split a long reduction with few outputs among the cores."""
    name, dag, config = state.current, state.dag, context.config
    cores = context.machine.cores
    if not predicates.needs_more_parallelism(dag, name, cores, config.rfactor_spatial_per_core):
        return Derivation()
    stage, lanes = dag.stages[name], operands.contiguous_reduction(dag, name)
    if stage.derived:
        return Derivation()
    others = [axis for axis in stage.reduce if axis != lanes] or stage.reduce
    axis = max(others, key=lambda a: stage.axes[a].size)
    extent, most = stage.axes[axis].size, cores * config.rfactor_max_per_core
    return _factored(state, axis, [(d, extent // d) for d in divisors(extent) if 1 < d <= most])


def rfactor_for_lanes(state: State, context: RuleContext[Hardware]) -> Derivation:
    """Rule 6, inner factor: split a reduction that runs along memory into vector lanes."""
    name, dag = state.current, state.dag
    axis = operands.contiguous_reduction(dag, name)
    if axis is None or predicates.has_data_reuse(dag, name):
        return Derivation()
    item_bytes = dag.buffers[dag.stages[name].output].item_bytes
    most = context.config.max_vector_bytes // item_bytes
    extent = dag.stages[name].axes[axis].size
    rows = [(extent // d, d) for d in divisors(extent) if 1 < d <= most]
    return _factored(state, axis, rows, inner=True)


def _factored(
    state: State, axis: int, rows: list[tuple[int, int]], inner: bool = False
) -> Derivation:
    """`state` with `axis` of its current stage split as one of `rows`.

    The partial stage is visited next, so that a sum over everything gets threads and lanes.
    """
    return Derivation((state.factored(axis, rows, inner).advance(),) if rows else ())


def add_cache_stage(state: State, _: RuleContext[Hardware]) -> Derivation:
    """Rule 5: an output with data reuse and nothing to fuse gets a cache first.

    Deviation: the paper also caches stages that are no output, although their result is already in
    a temporary buffer.
    """
    name, dag = state.current, state.dag
    if not dag.is_output(name) or not predicates.has_data_reuse(dag, name):
        return Derivation()
    if len(dag.stages[name].writes) != 1 or name in state.tiled:
        return Derivation()
    return Derivation((state.write_cached(f"{name}.cache"),))


def multi_level_tile_with_fusion(state: State, context: RuleContext[Hardware]) -> Derivation:
    """Rule 4: tile the stage and compute its elementwise consumer inside the tiles."""
    name, dag = state.current, state.dag
    consumer = predicates.fusible_consumer(dag, name)
    if consumer is None or not predicates.has_data_reuse(dag, name):
        return Derivation()
    if consumer in state.tiled or consumer in state.fused:
        return Derivation()
    split = phased(state, consumer)
    states = tuple(
        _tiled(split, context, consumer if _may_have_tails(context, level) else None)
        .add(FuseConsumer(name, consumer, level))
        .advance()
        for level in context.config.fuse_levels
    )
    # A cache without a fused copy only costs time. If several stages are costly, the number of
    # sketches multiplies, and the sketches without fusion are left out.
    several = sum(predicates.has_data_reuse(dag, stage) for stage in dag.order) > 1
    return Derivation(states, exclusive=several or consumer.endswith(".cache"))


def multi_level_tile(state: State, context: RuleContext[Hardware]) -> Derivation:
    """Rule 3: multi-level tiling of a stage with data reuse."""
    name, dag = state.current, state.dag
    if not predicates.has_data_reuse(dag, name):
        return Derivation()
    split = phased(state, "") if dag.is_output(name) else state
    return Derivation((_tiled(split, context).advance(),), exclusive=True)


def skip(state: State, _: RuleContext[Any]) -> Derivation:
    """Rule 1: leave the stage as it is."""
    return Derivation((state.advance(),))


# The order is part of the method: after an exclusive rule, no later rule applies to the stage.
CPU_RULES: tuple[Rule[Hardware], ...] = (
    always_inline,  # first: cheap stages disappear before any tiling
    inline_padding,  # an alternative to a padding buffer with a location from the search
    rfactor_for_threads,  # before tiling: a factored reduction is not tiled
    rfactor_for_lanes,  # after threads: it also applies to their partial stage
    add_cache_stage,  # adds a copy of the output, which tiling then fuses
    choose_vector_axis,  # before the rules for the operand along the vectors
    use_dot_instruction,  # copies the operand along the vectors in groups
    pack_operand,  # adds a copy, whose location is a decision
    transpose_operand,  # adds a copy, too
    tile_host,  # an alternative at the end of a chain of reductions
    attach_register_tile,  # only inside a tiled host; a separate nest is the alternative
    use_tile_instruction,  # before vectors, which large tiles replace
    multi_level_tile_with_fusion,  # before plain tiling, which it mostly replaces
    multi_level_tile,
    transpose_in_squares,  # for stages without tiles
    skip,  # last: always applies
)


def _may_have_tails(context: RuleContext[Hardware], level: int) -> bool:
    """Whether a consumer fused at `level` reads each tile before the next one begins."""
    return level == context.config.tile_structure.index("R")


def _packed(state: State, context: RuleContext[Hardware]) -> State:
    """`state` with the constant operand of its current stage packed; the width is a decision.

    Deviation: the paper rewrites layouts after the search, for the tiles of the best program. Here
    the width is a decision of the search.
    """
    name, dag = state.current, state.dag
    buffer = operands.vector_operand(dag, name)
    if buffer is None or not dag.buffers[buffer].constant or dag.stages[name].instruction:
        return state  # an instruction has its operand in groups already
    hole = f"{name}.{buffer}.packed"
    widths = tables.pack_widths(dag, name, dag.buffers[buffer], context.machine, context.config)
    tiles = tables.axis_hole(dag, name, dag.stages[name].spatial[-1])
    step = LayoutRewrite(name, buffer, hole, tiles=tiles)
    return state.add(step, decisions=(category(hole, name, widths),))


def _tiled(state: State, context: RuleContext[Hardware], consumer: str | None = None) -> State:
    """`state` with its current stage tiled, and one decision per axis.

    With a `consumer`, which reads each tile, tiles need not divide the axes.

    Deviation: the paper's tile sizes divide their axis; an axis of prime extent then has no tile
    that fills vectors.
    """
    state = _packed(state, context)
    name, config = state.current, context.config
    loose = tables.loose_axes(state.dag, name, consumer, context.machine, config)
    decisions = tables.tiles(state.dag, name, loose, context.machine, config)
    step = MultiLevelTile(name, config.tile_structure, holes_of(state.dag, name, decisions))
    return state.add(step, decisions=tuple(decisions.values()))
