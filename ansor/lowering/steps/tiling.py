"""Splits, orders, fuses and nests loops."""

from __future__ import annotations

import math
from typing import Any

from ansor.lowering.passes.shifted_tails import Tail
from ansor.lowering.replay import Replay
from ansor.lowering.steps.apply import apply
from ansor.program.loop_structure import Loop, lane_table, largest_divisor, num_leading, own_loops
from ansor.program.steps import (
    ComputeAt,
    FuseConsumer,
    MultiLevelTile,
    Parallel,
    RegisterTile,
    StripMine,
    TensorTile,
)


@apply.register
def multi_level_tile(step: MultiLevelTile, replay: Replay) -> None:
    split_root(replay, step.stage, step)


@apply.register
def register_tile(step: RegisterTile, replay: Replay) -> None:
    pass  # the loops are split when the stage is attached


@apply.register
def strip_mine(step: StripMine, replay: Replay) -> None:
    split_root(replay, step.stage, step)


def split_root(replay: Replay, name: str, shape: MultiLevelTile | StripMine) -> None:
    """Splits the loops of a root stage as its holes say and puts the parts in order."""
    loops = replay.sch.get_loops(replay.blocks[name])
    if isinstance(shape, StripMine) and shape.hole is None:
        _split_for_vectors(replay, name, loops)
        return
    roles = replay.roles
    parts: dict[tuple[int, int], Any] = {}
    for axis, loop in enumerate(loops):
        hole = roles.hole_of(name, axis)
        values = () if hole is None else replay.values[hole]
        tile = values[-1:] if not _ends_in_instruction(shape, axis) else values[-2:]
        split = [loop] if hole is None else _tiled(replay, name, axis, loop, values, tile)
        parts |= {(axis, part): handle for part, handle in enumerate(split)}
    _reorder(replay, name, own_loops(replay.dag.stages[name], shape), parts)


def _ends_in_instruction(shape: MultiLevelTile | StripMine, axis: int) -> bool:
    return isinstance(shape, TensorTile) and axis in shape.matrix


def _tiled(
    replay: Replay,
    name: str,
    axis: int,
    loop: Any,
    factors: tuple[int, ...],
    tile: tuple[int, ...],
) -> list[Any]:
    """Splits a loop; registers the tile, the last factor, if factors do not divide the extent."""
    extent = int(replay.sch.get(loop).extent)
    if math.prod(factors) > extent:
        replay.tails[name, axis] = Tail(extent, math.prod(tile))
    return _parts(replay, loop, factors)


def _parts(replay: Replay, loop: Any, factors: tuple[int, ...]) -> list[Any]:
    return list(replay.sch.split(loop, list(factors), preserve_unit_iters=True))


def _reorder(
    replay: Replay, name: str, order: tuple[Loop, ...], parts: dict[tuple[int, int], Any]
) -> None:
    replay.loops[name] = [parts[loop.axis, loop.part] for loop in order]
    if len(order) > 1:
        replay.sch.reorder(*replay.loops[name])


@apply.register
def parallel(step: Parallel, replay: Replay) -> None:
    (count,) = replay.values[step.hole]
    if count == 0:
        return
    loops = replay.loops[step.stage]
    fused = replay.sch.fuse(*loops[:count], preserve_unit_iters=True)
    replay.sch.parallel(fused)
    replay.loops[step.stage] = [fused] * count + loops[count:]


@apply.register
def fuse_consumer(step: FuseConsumer, replay: Replay) -> None:
    position = replay.roles.position_of(replay.values, step.consumer)
    loop = replay.loops[step.stage][position - 1]
    block = replay.blocks[step.consumer]
    replay.sch.reverse_compute_at(block, loop, preserve_unit_loops=True)
    tails = {axis: tail for (name, axis), tail in replay.tails.items() if name == step.stage}
    replay.tails |= {(step.consumer, axis): tail for axis, tail in tails.items()}
    _adopt(replay, step.consumer)


@apply.register
def compute_at(step: ComputeAt, replay: Replay) -> None:
    roles = replay.roles
    position = roles.position_of(replay.values, step.stage)
    if position > 0:
        loop = replay.loops[step.host][position - 1]
        for name in (*roles.fused_into(step.stage), step.stage):
            replay.sch.compute_at(replay.blocks[name], loop, preserve_unit_loops=True)
        _adopt(replay, step.stage)
        return
    split_attached(replay, step.stage, replay.sch.get_loops(replay.blocks[step.stage]))
    _parallel_root(replay, step.stage)


def _adopt(replay: Replay, name: str) -> None:
    """Registers the loops that attaching has made, in the order of the block's variables."""
    axes = range(len(replay.dag.stages[name].axes))
    loops = replay.sch.get_loops(replay.blocks[name])[-len(axes) :]
    order = replay.variables.get(name, list(axes))
    split_attached(replay, name, [loops[order.index(axis)] for axis in axes])


def split_attached(replay: Replay, name: str, own: list[Any]) -> None:
    """Splits the loops of an attached stage, for registers or only for vectors."""
    shape = replay.roles.shape.get(name)
    if not isinstance(shape, RegisterTile):
        _split_for_vectors(replay, name, own)
        return
    parts: dict[tuple[int, int], Any] = {}
    for axis, (loop, hole) in enumerate(zip(own, shape.holes, strict=True)):
        most = replay.values[hole][0] if hole else 1
        reduce = replay.dag.stages[name].axes[axis].reduce
        split = [loop] if reduce else _divide(replay, loop, most)
        parts |= {(axis, part): handle for part, handle in enumerate(split)}
    _reorder(replay, name, own_loops(replay.dag.stages[name], shape), parts)


def _divide(replay: Replay, loop: Any, most: int) -> list[Any]:
    """Splits off the largest divisor of a loop's extent that is at most `most`."""
    extent = int(replay.sch.get(loop).extent)
    inner = largest_divisor(extent, most)
    return _parts(replay, loop, (extent // inner, inner))


def _split_for_vectors(replay: Replay, name: str, own: list[Any]) -> None:
    """Orders a stage's own loops: spatial ones, reductions, the vector part last."""
    order = own_loops(replay.dag.stages[name], None)
    parts: dict[tuple[int, int], Any] = {(axis, 0): loop for axis, loop in enumerate(own)}
    if order[-1].part == 1:
        axis = order[-1].axis
        step, extent = replay.roles.vector.get(name), int(replay.sch.get(own[axis]).extent)
        most, register = (step.lanes, step.register) if step is not None else (1, 0)
        width = int(lane_table(most, register, extent)[extent])
        factors = (-(-extent // width), width)
        outer, inner = _tiled(replay, name, axis, own[axis], factors, factors[-1:])
        parts |= {(axis, 0): outer, (axis, 1): inner}
    _reorder(replay, name, order, parts)


def _parallel_root(replay: Replay, name: str) -> None:
    """Runs a located stage that ended up at the root on all cores."""
    count = num_leading(replay.dag.stages[name])
    if count:
        fused = replay.sch.fuse(*replay.loops[name][:count], preserve_unit_iters=True)
        replay.sch.parallel(fused)
        replay.loops[name][:count] = [fused] * count
