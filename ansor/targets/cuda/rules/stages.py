"""Functions that rules for GPUs share: fetches of operands, and consumers of results."""

from __future__ import annotations

from ansor.dag import predicates
from ansor.program.decision import category
from ansor.program.steps import BindRows, CooperativeFetch, Pipeline, Placed
from ansor.sketch.rule import RuleContext
from ansor.sketch.state import State
from ansor.targets.cuda.machine import Gpu


def cached(state: State) -> State:
    """`state` with its current stage writing to a new buffer that a new stage copies."""
    return state.write_cached(f"{state.current}.cache")


def free_consumer(state: State, name: str) -> str | None:
    """The elementwise consumer of a stage, if no other stage is computed inside its loops."""
    consumer = predicates.fusible_consumer(state.dag, name)
    hosts = {n for s in state.steps if isinstance(s, Placed) for n in (s.host, s.stage)}
    taken = hosts | state.fused | state.tiled | {s.stage for s in rows_of(state)}
    return None if consumer in taken else consumer


def rows_of(state: State) -> list[BindRows]:
    return [step for step in state.steps if isinstance(step, BindRows)]


def fetched(state: State, context: RuleContext[Gpu]) -> State:
    """`state` with the operands of its current, tiled stage fetched to shared memory. Operands stay
    in place if a tile does not read a box of them."""
    name = state.current
    reads = state.dag.stages[name].reads
    scattered = {read.buffer for read in reads if not read.is_affine}
    for buffer in dict.fromkeys(r.buffer for r in reads if r.buffer not in scattered):
        producer = producer_of(state, buffer)
        if producer is None:
            producer = f"{name}.{buffer}.shared"
            state = state.read_copied(buffer, producer)
        config = context.config.gpu
        state = fetch(state, producer, config.vector_widths, config.pads)
    return state


def fetch(state: State, producer: str, widths: tuple[int, ...], pads: tuple[int, ...]) -> State:
    """`state` with a stage computed into shared memory, for its current stage."""
    width = category(f"{producer}.fetch", producer, widths)
    pad = category(f"{producer}.pad", producer, pads)
    step = CooperativeFetch(producer, state.current, width.name, pad.name)
    return state.add(step, decisions=(width, pad))


def pipelined(state: State, context: RuleContext[Gpu]) -> State:
    """`state` with the operands of its current, tiled stage fetched ahead of their use."""
    name, gpu = state.current, context.machine
    if not any(isinstance(s, CooperativeFetch) and s.host == name for s in state.steps):
        return state
    depths = context.config.gpu.rounds_ahead
    ahead = category(f"{name}.ahead", name, depths if gpu.copies_asynchronously else depths[:2])
    step = Pipeline(name, ahead.name, gpu.copies_asynchronously)
    return state.add(step, decisions=(ahead,))


def producer_of(state: State, buffer: str) -> str | None:
    """The stage that computes a buffer, if that can be done while it is fetched."""
    for stage in state.dag.stages.values():
        if stage.output == buffer and state.dag.buffers[buffer].kind == "intermediate":
            alone = len(state.dag.consumers(stage.name)) == 1
            return stage.name if alone and predicates.can_inline(state.dag, stage.name) else None
    return None
