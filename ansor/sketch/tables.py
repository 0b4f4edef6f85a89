"""The tables of tile sizes: the choices of each decision of a tiled stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ansor.config import SketchConfig
from ansor.dag import chains, operands
from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import Buffer, Group, Stage, axes_of_access
from ansor.program.decision import Decision, category, divisors, factorisations, tailed
from ansor.program.loop_structure import vector_axis
from ansor.targets.cpu.machine import Hardware

Tables = dict[int, Decision]  # by axis


def axis_hole(dag: ComputeDAG, name: str, axis: int) -> str:
    """The name of the decision that splits an axis of a tiled stage."""
    return f"{name}.{dag.stages[name].axes[axis].name}"


def tiles(
    dag: ComputeDAG, name: str, loose: Mapping[int, float], hardware: Hardware, config: SketchConfig
) -> Tables:
    """Factors of every axis of a multi-level tiled stage. Factors of `loose` axes need not divide
    the extent, if at most the given share of the axis is computed twice."""
    stage, structure = dag.stages[name], config.tile_structure
    batch = operands.batch_axes(dag, name)
    found = {}
    for number, axis in enumerate(stage.axes):
        parts = structure.count("R" if axis.reduce else "S")
        table = factorisations(axis.size, parts)
        if not axis.reduce:
            most = 1 if number in batch else config.max_innermost_factor
            table = table[table[:, -1] <= most]
        if number in loose:
            inner = _tiles_of(dag, name, number, hardware, config)
            spare = loose[number] < config.max_tail_waste
            larger = [size for size in inner if not spare or size > config.good_rows[0]]
            tails = tailed(axis.size, parts, larger, loose[number], spare)
            table = np.concatenate([table, tails])
        found[number] = Decision(axis_hole(dag, name, number), name, table)
    return found


def host_tiles(dag: ComputeDAG, name: str, config: SketchConfig) -> Tables:
    """Factors of every axis of a stage that hosts a chain of others."""
    stage, structure = dag.stages[name], config.host_structure
    lanes = config.max_vector_bytes // dag.buffers[stage.output].item_bytes
    whole = chains.whole_axes(dag, name)
    found = {}
    for axis in sorted(set(stage.spatial) - stage.folded):
        vector = axis == vector_axis(stage)
        table = factorisations(stage.axes[axis].size, structure.count("S") + vector)
        table = table[table[:, -1] <= lanes] if vector else table
        table = table[table[:, :2].prod(axis=1) == 1] if axis in whole else table
        found[axis] = Decision(f"{name}.{stage.axes[axis].name}", name, table)
    return found


def register_tile_sizes(
    dag: ComputeDAG, name: str, hardware: Hardware, config: SketchConfig
) -> Tables:
    """Largest sizes of an attached stage's register tile along each spatial axis."""
    stage, batch = dag.stages[name], operands.batch_axes(dag, name)
    found = {}
    for axis in stage.spatial:
        inner = (1,) if axis in batch else _tiles_of(dag, name, axis, hardware, config)
        fits = [most for most in inner if most <= stage.axes[axis].size] or [1]
        hole = f"{name}.{stage.axes[axis].name}.registers"
        found[axis] = category(hole, name, tuple(fits))
    return found


def vectors(name: str, extent: int, widths: Iterable[int]) -> Decision:
    """Lengths of vectors along a stage's last axis: the elements of `widths` that divide it."""
    rows = [(extent // width, width) for width in widths if extent % width == 0]
    return Decision(f"{name}.vector", name, np.asarray(rows, dtype=np.int32))


def pack_widths(
    dag: ComputeDAG, name: str, buffer: Buffer, hardware: Hardware, config: SketchConfig
) -> tuple[int, ...]:
    """Widths of the last dimension of a packed constant; 0 is the plain layout."""
    return (0, *_panels(dag, name, buffer, hardware.lanes(buffer.item_bytes), config))


def group_widths(
    dag: ComputeDAG,
    name: str,
    buffer: Buffer,
    group: Group,
    hardware: Hardware,
    config: SketchConfig,
) -> tuple[int, ...]:
    """Widths of the last dimension of a constant in groups; the extent keeps it whole."""
    extent = buffer.shape[-1]
    assert isinstance(extent, int)
    lanes = hardware.lanes(buffer.item_bytes * group.elements)
    return (*_panels(dag, name, buffer, lanes, config), extent)


def _panels(
    dag: ComputeDAG, name: str, buffer: Buffer, lanes: int, config: SketchConfig
) -> tuple[int, ...]:
    """Widths of panels: whole registers that divide the last dimension of a stage's operand.

    If no whole registers divide it, panels of any whole registers have columns in the order of the
    stage's tiles. No other stage may then read the columns.
    """
    extent = buffer.shape[-1]
    assert isinstance(extent, int)
    most = min(config.max_innermost_factor, extent - 1)
    even = tuple(d for d in divisors(extent) if d % lanes == 0 and d <= most)
    if even or not operands.owns_columns(dag, name, buffer.name):
        return even
    return tuple(range(lanes, most + 1, lanes))


def loose_axes(
    dag: ComputeDAG, name: str, consumer: str | None, hardware: Hardware, config: SketchConfig
) -> Mapping[int, float]:
    """Axes whose tiles need not divide them, each with the share that may be computed twice.

    The share is large if tiles that divide leave vectors or registers idle, and small if they only
    give smaller register tiles. Tiles may fail to divide only if a consumer reads each of them.
    Buffers that both stages read along such an axis must be inputs, because a producer inside the
    loops is computed for the tile before it is moved.
    """
    if consumer is None or not _reads_inputs(dag, consumer, {dag.stages[name].output}):
        return {}
    stage = dag.stages[name]
    lanes = hardware.lanes(dag.buffers[stage.output].item_bytes)
    last, found = stage.spatial[-1], {}
    if stage.axes[last].size > lanes and leaves_lanes_idle(stage, lanes):
        found[last] = config.max_tail_waste
    rows = set(stage.spatial[:-1]) - operands.batch_axes(dag, name)
    low, high = config.good_rows
    longest = max(rows, key=lambda a: stage.axes[a].size, default=last)
    good = any(low <= d <= high for a in rows for d in divisors(stage.axes[a].size))
    if rows and stage.axes[longest].size > high:
        found[longest] = config.spare_tail_waste if good else config.max_tail_waste
    return {axis: waste for axis, waste in found.items() if _moves_only_inputs(dag, name, axis)}


def leaves_lanes_idle(stage: Stage, lanes: int) -> bool:
    """Whether no divisor of a stage's last spatial axis fills vectors."""
    return not any(d % lanes == 0 for d in divisors(stage.axes[stage.spatial[-1]].size))


def _moves_only_inputs(dag: ComputeDAG, name: str, axis: int) -> bool:
    reads = [read for read in dag.stages[name].reads if axis in axes_of_access(read)]
    return all(dag.buffers[read.buffer].kind == "input" for read in reads)


def _reads_inputs(dag: ComputeDAG, name: str, besides: set[str]) -> bool:
    buffers = {read.buffer for read in dag.stages[name].reads} - besides
    return all(dag.buffers[buffer].kind == "input" for buffer in buffers)


def _tiles_of(
    dag: ComputeDAG, name: str, axis: int, hardware: Hardware, config: SketchConfig
) -> tuple[int, ...]:
    """Sizes of a register tile along an axis: whole vectors, or a few rows."""
    stage = dag.stages[name]
    if axis != vector_axis(stage):
        return config.register_rows
    lanes = hardware.lanes(dag.buffers[stage.output].item_bytes)
    return tuple(range(lanes, config.max_innermost_factor + 1, lanes)) or (1,)
