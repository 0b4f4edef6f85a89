"""Annotations of complete loops: vectors, unrolling, initialisation, padding, prefetch."""

from __future__ import annotations

from typing import Any

from ansor.lowering.passes.skip_padding import Guard
from ansor.lowering.prefetch.constant_operands import PrefetchedOperand
from ansor.lowering.replay import Replay
from ansor.lowering.steps.apply import apply
from ansor.program.loop_structure import own_loops
from ansor.program.steps import (
    Initialise,
    Interleave,
    Prefetch,
    PrefetchConsumer,
    PrefetchOperands,
    PrefetchPackedRows,
    SkipPadding,
    Step,
    Transpose,
    Unroll,
    Vectorize,
)


@apply.register
def vectorize(step: Vectorize, replay: Replay) -> None:
    _vectorize(replay, replay.loops[step.stage][-1])


@apply.register
def transpose(step: Transpose, replay: Replay) -> None:
    outer, inner = replay.loops[step.stage][-2:]
    if all(int(replay.sch.get(loop).extent) == step.lanes for loop in (outer, inner)):
        replay.squares[step.stage] = outer, step.lanes
    _vectorize(replay, inner)


@apply.register
def interleave(step: Interleave, replay: Replay) -> None:
    outer, inner = replay.loops[step.stage][-2:]
    lanes = int(replay.sch.get(inner).extent)
    if int(replay.sch.get(outer).extent) == step.rows and lanes > 1:
        replay.interleaved[step.stage] = outer, lanes
    _vectorize(replay, inner)


def _vectorize(replay: Replay, loop: Any) -> None:
    if int(replay.sch.get(loop).extent) > 1:
        replay.sch.vectorize(loop)


@apply.register
def unroll(step: Unroll, replay: Replay) -> None:
    for number in replay.roles.unrolled(step.stage):
        loop = replay.loops_of(step.stage)[number]
        if int(replay.sch.get(loop).extent) > 1:
            replay.sch.unroll(loop)
    most = replay.values[step.hole][0] if step.hole is not None else 0
    if most > 0:
        outer = replay.loops_of(step.stage)[0]
        replay.sch.annotate(outer, "pragma_auto_unroll_max_step", most)
        replay.sch.annotate(outer, "pragma_unroll_explicit", 1)


@apply.register
def initialise(step: Initialise, replay: Replay) -> None:
    stage = replay.dag.stages[step.stage]
    order = own_loops(stage, replay.roles.shape.get(step.stage))
    first = next(i for i, loop in enumerate(order) if loop.reduce)
    replay.blocks[step.stage] = _update_of(replay, step.stage, replay.loops_of(step.stage)[first])


@apply.register
def skip_padding(step: SkipPadding, replay: Replay) -> None:
    if replay.values[step.hole][0]:
        replay.guards[step.stage] = [
            Guard(replay.buffers[p.buffer], p.dim, p.first, p.end) for p in step.padded
        ]


@apply.register
def prefetch(step: Prefetch, replay: Replay) -> None:
    if replay.values[step.hole][0]:
        parameter = replay.parameters.index(step.buffer)  # a change of layout makes a new buffer
        replay.prefetched[step.stage] = PrefetchedOperand(
            parameter, step.elements, step.run, step.distance, step.line_bytes
        )


@apply.register(PrefetchPackedRows)
@apply.register(PrefetchOperands)
@apply.register(PrefetchConsumer)
def always_prefetch(step: Step, replay: Replay) -> None:
    replay.prefetches.append(step)


def _update_of(replay: Replay, name: str, loop: Any) -> Any:
    """Splits off the initialisation; the update keeps the block's handle."""
    replay.initial[name] = replay.sch.decompose_reduction(replay.blocks[name], loop)
    return replay.blocks[name]
