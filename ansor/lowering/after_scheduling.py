"""Rewrites of a scheduled function that TVM's schedule cannot express."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tvm import tirx

from ansor.lowering.passes.dot_products import DOT_PRODUCTS
from ansor.lowering.passes.interleave import interleave_tiles
from ansor.lowering.passes.shifted_tails import Tail, shift_tails
from ansor.lowering.passes.skip_padding import insert_padding_conditions
from ansor.lowering.passes.thread_binding import deal_out
from ansor.lowering.passes.transpose import transpose_tiles
from ansor.lowering.prefetch.constant_operands import insert_prefetches
from ansor.lowering.prefetch.consumer_tiles import TileConsumer, prefetch_tiles
from ansor.lowering.prefetch.emit import with_fetching
from ansor.lowering.prefetch.row_operands import prefetch_rows
from ansor.lowering.prefetch.tile_ahead import FarOperands, prefetch_ahead
from ansor.lowering.replay import Replay
from ansor.program.steps import PrefetchConsumer, PrefetchOperands, PrefetchPackedRows

T = TypeVar("T")

TENSOR_CORES = "ansor.tensor_cores"  # attribute of a function that uses them
ASYNC_COPIES = "ansor.async_copies"  # the same, to shared memory


@dataclass(frozen=True)
class Rewrite:
    """One rewrite of a scheduled function.

    Attributes:
        reason: why it runs, and why at this place in the order.
        apply: the rewrite; the replay has the loops that it concerns.
    """

    reason: str
    apply: Callable[[tirx.PrimFunc, Replay], tirx.PrimFunc]


def rewritten(replay: Replay) -> tirx.PrimFunc:
    """The scheduled function after all rewrites, in the order of `REWRITES`."""
    func = replay.sch.mod["main"]
    for rewrite in REWRITES:
        func = rewrite.apply(func, replay)
    return func


def _shift_tails(func: tirx.PrimFunc, replay: Replay) -> tirx.PrimFunc:
    tails: dict[str, dict[int, Tail]] = {}
    for (name, axis), tail in replay.tails.items():
        number = _spatial_number(replay, name, axis)
        packed = _in_tile_order(func, replay, name, axis)
        tails.setdefault(replay.hint(name), {})[number] = replace(tail, packed=packed)
        if name in replay.initial:
            hint = str(replay.sch.get(replay.initial[name]).name_hint)
            tails.setdefault(hint, {})[number] = tail
    return shift_tails(func, tails)


def _in_tile_order(func: tirx.PrimFunc, replay: Replay, name: str, axis: int) -> tuple[Any, ...]:
    """The constants whose columns are in the order of tiles of a stage along an axis."""
    if axis != replay.dag.stages[name].spatial[-1]:
        return ()
    named = zip(replay.parameters, func.params, strict=True)
    return tuple(param for buffer, param in named if replay.in_tile_order.get(buffer) == name)


def _spatial_number(replay: Replay, name: str, axis: int) -> int:
    """Number of an axis among the spatial variables of its block."""
    axes = replay.dag.stages[name].axes
    order = replay.variables.get(name, list(range(len(axes))))
    return [a for a in order if not axes[a].reduce].index(axis)


def _prefetch(func: tirx.PrimFunc, replay: Replay) -> tirx.PrimFunc:
    """Prefetches of constants, of packed rows, of operands, and of the data of tiles' consumers."""
    steps = replay.prefetches
    copies = {s.stage: s for s in steps if isinstance(s, PrefetchPackedRows)}
    operands = (s for s in steps if isinstance(s, PrefetchOperands))
    far = {step.stage: _far_operands(func, replay, step) for step in operands}
    fused = (s for s in steps if isinstance(s, PrefetchConsumer))
    consumers = {step.consumer: _consumer(replay, step) for step in fused}
    body = insert_prefetches(func.body, _by_hint(replay, replay.prefetched), func.params)
    body = prefetch_rows(body, _by_hint(replay, copies), _by_hint(replay, far))
    body = prefetch_ahead(body, _by_hint(replay, far))
    body = prefetch_tiles(body, _by_hint(replay, consumers), func.params)
    return func if body.same_as(func.body) else func.with_body(with_fetching(body))


def _far_operands(func: tirx.PrimFunc, replay: Replay, step: PrefetchOperands) -> FarOperands:
    named = zip(replay.parameters, func.params, strict=True)
    return FarOperands([param for name, param in named if name in step.buffers], step)


def _consumer(replay: Replay, step: PrefetchConsumer) -> TileConsumer:
    variables = [replay.sch.get(loop).loop_var for loop in replay.loops[step.consumer]]
    return TileConsumer(replay.hint(step.stage), variables, step)


def _by_hint(replay: Replay, by_stage: Mapping[str, T]) -> dict[str, T]:
    """The values by the names of the stages' blocks."""
    return {replay.hint(name): x for name, x in by_stage.items()}


def _skip_padding(func: tirx.PrimFunc, replay: Replay) -> tirx.PrimFunc:
    return insert_padding_conditions(func, _by_hint(replay, replay.guards))


def _transpose(func: tirx.PrimFunc, replay: Replay) -> tirx.PrimFunc:
    return transpose_tiles(func, _variables(replay, replay.squares))


def _interleave(func: tirx.PrimFunc, replay: Replay) -> tirx.PrimFunc:
    return interleave_tiles(func, _variables(replay, replay.interleaved))


def _bind_threads(func: tirx.PrimFunc, replay: Replay) -> tirx.PrimFunc:
    return deal_out(func, _variables(replay, replay.dealt))


def _variables(replay: Replay, loops: Mapping[str, tuple[Any, int]]) -> dict[Any, int]:
    return {replay.sch.get(loop).loop_var: size for loop, size in loops.values()}


def _mark(func: tirx.PrimFunc, replay: Replay) -> tirx.PrimFunc:
    """Attributes that the compiler's settings depend on."""
    func = func.with_attr(TENSOR_CORES, True) if replay.instructions else func
    func = func.with_attr(DOT_PRODUCTS, True) if replay.has_dot_products else func
    return func.with_attr(ASYNC_COPIES, True) if replay.asynchronous else func


REWRITES = (
    Rewrite("the other rewrites read where tiles begin, and guards prevent vectors", _shift_tails),
    Rewrite("a prefetch is for all iterations, those on padding too", _prefetch),
    Rewrite("its conditions name loops of the schedule, which are still there", _skip_padding),
    Rewrite("TensorIR has no shuffle of vectors", _transpose),
    Rewrite("the same, and a vector with a stride is stored element by element", _interleave),
    Rewrite("the schedule binds only loops whose bijection it can prove", _bind_threads),
    Rewrite("the compiler's settings depend on these attributes", _mark),
)
