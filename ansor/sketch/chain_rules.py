"""Rules for chains of costly stages: the last one hosts the others, tile by tile.

Deviation: the paper fuses one elementwise consumer. A chain of two costly stages then writes its
whole intermediate result to memory.
"""

from __future__ import annotations

from ansor.dag import chains, operands, predicates
from ansor.dag.graph import ComputeDAG
from ansor.program.steps import FuseConsumer, MultiLevelTile, RegisterTile
from ansor.sketch import tables
from ansor.sketch.rule import Derivation, RuleContext, holes_of, locations_of
from ansor.sketch.state import State
from ansor.targets.cpu.machine import Hardware


def tile_host(state: State, context: RuleContext[Hardware]) -> Derivation:
    """Tiles the end of a chain, so that its producers can be computed tile by tile inside it."""
    name, dag, config = state.current, state.dag, context.config
    if not chains.ends_chain(dag, name) or not predicates.has_static_axes(dag.stages[name]):
        return Derivation()
    if locations_of(state).host.get(name) is not None:
        return Derivation()
    decisions = tables.host_tiles(dag, name, context.config)
    step = MultiLevelTile(name, config.host_structure, holes_of(dag, name, decisions))
    return Derivation((state.add(step, decisions=tuple(decisions.values())).advance(),))


def attach_register_tile(state: State, context: RuleContext[Hardware]) -> Derivation:
    """Tiles a stage for registers only, and computes it inside the loops of a tiled stage. Its
    elementwise consumer is computed with each tile.

    The number of loops around it is a decision, as for any stage without a separate nest.
    """
    name, dag = state.current, state.dag
    if not predicates.has_data_reuse(dag, name) or not predicates.has_static_axes(dag.stages[name]):
        return Derivation()
    host = locations_of(state).host.get(name)
    if host is None or host not in state.tiled:
        return Derivation()
    decisions = tables.register_tile_sizes(dag, name, context.machine, context.config)
    step = RegisterTile(name, holes_of(dag, name, decisions))
    done = state.add(step, decisions=tuple(decisions.values())).advance()
    if (consumer := _finishes(state, name)) is not None:
        done = done.add(FuseConsumer(name, consumer, 1))
    # The end of a chain is only tiled to host its producers.
    return Derivation((done,), exclusive=chains.ends_chain(dag, host))


def _finishes(state: State, name: str) -> str | None:
    """The consumer of an attached stage that can be computed with each of its register tiles."""
    dag, consumer = state.dag, predicates.fusible_consumer(state.dag, name)
    if consumer is None or consumer in state.tiled or consumer in state.fused:
        return None
    others = {read.buffer for read in dag.stages[consumer].reads} - {dag.stages[name].output}
    inputs = all(dag.buffers[buffer].kind == "input" for buffer in others)
    return consumer if inputs and locations_of(state).host.get(consumer) is not None else None


def completes_for_reuse(dag: ComputeDAG, name: str) -> bool:
    """Whether a stage completes a reduction, and another reduction reads it repeatedly.

    Deviation: such a stage is computed with the first reduction. An example is bias and activation
    between a depthwise and a pointwise convolution. If it were inlined into the second reduction,
    it would be computed once for each filter.
    """
    output = dag.stages[name].output
    repeated = any(
        predicates.has_data_reuse(dag, c) and operands.reads_per_element(dag, c, output) > 1
        for c in dag.consumers(name)
    )
    return repeated and dag.stages[name].ops.flops > 0 and _completes(dag, name)


def _completes(dag: ComputeDAG, name: str) -> bool:
    """Whether a stage is an elementwise function of a reduction with reuse, directly or over
    several stages."""
    for producer in dag.producers(name):
        if predicates.fusible_consumer(dag, producer) == name and (
            predicates.has_data_reuse(dag, producer)
            or (not dag.stages[producer].reduce and _completes(dag, producer))
        ):
            return True
    return False
