"""The rule for instructions that multiply tiles of registers (AMX).

Deviation: the paper knows no such instructions.
"""

from __future__ import annotations

from ansor.dag import predicates
from ansor.program.steps import DotProducts, DotTile, FuseConsumer
from ansor.program.tile_instructions import TileInstruction, tile_form_of
from ansor.sketch import tables
from ansor.sketch.rule import Derivation, RuleContext, holes_of
from ansor.sketch.state import State
from ansor.sketch.tile_tables import TileAxes, tile_axes, tile_sizes
from ansor.targets.cpu.machine import Hardware


def use_tile_instruction(state: State, context: RuleContext[Hardware]) -> Derivation:
    """Tiles a stage that adds up groups, and lets an instruction on tiles compute the tiles.

    Vectors remain an alternative if tiles are hardly faster, as with few rows or few groups.
    """
    name, dag = state.current, state.dag
    instruction = tile_form_of(dag.stages[name].instruction)
    if instruction is None or not predicates.has_data_reuse(dag, name):
        return Derivation()
    levels = _fusions(state, context)
    made = [_tiled(state, instruction, level, context) for level in levels]
    states = tuple(tiled for tiled, _ in filter(None, made))
    gains = [gain for _, gain in filter(None, made)]
    return Derivation(states, exclusive=min(gains, default=0) >= context.config.min_tile_gain)


def _fusions(state: State, context: RuleContext[Hardware]) -> list[int | None]:
    """The levels at which the consumer may be fused; None for no consumer."""
    name = state.current
    consumer = predicates.fusible_consumer(state.dag, name)
    if consumer is None or consumer in state.tiled or consumer in state.fused:
        return [None]
    return list(context.config.fuse_levels)


def _tiled(
    state: State,
    instruction: TileInstruction,
    level: int | None,
    context: RuleContext[Hardware],
) -> tuple[State, float] | None:
    """`state` with its current stage tiled, and the rate of tiles over the rate of vectors.

    None if tiles are no faster.
    """
    name, config = state.current, context.config
    consumer = None if level is None else predicates.fusible_consumer(state.dag, name)
    takes_over = level == config.tile_structure.index("R")
    loose = tables.loose_axes(
        state.dag, name, consumer if takes_over else None, context.machine, config
    )
    axes = tile_axes(state.dag, name, _words(state), loose)
    gain = 0.0 if axes is None else _gain(instruction, axes, context.machine)
    if axes is None or gain <= 1:
        return None
    decisions = tile_sizes(state.dag, name, axes, loose, config)
    holes, structure = holes_of(state.dag, name, decisions), f"{config.tile_structure}T"
    step = DotTile(name, structure, holes, axes.matrix, instruction.name)
    made = state.add(step, decisions=tuple(decisions.values()))
    if consumer is not None and level is not None:
        made = made.add(FuseConsumer(name, consumer, level))
    return made.advance(), gain


def _words(state: State) -> int:
    """The reduction axis of the current stage that counts groups."""
    name = state.current
    steps = (s for s in state.steps if isinstance(s, DotProducts) and s.stage == name)
    return next(steps).axis


def _gain(instruction: TileInstruction, axes: TileAxes, hardware: Hardware) -> float:
    """The rate of an instruction on tiles over that on vectors; 0 if the processor lacks it."""
    unit, vectors = hardware.dot_unit(instruction.name), hardware.dot_unit(instruction.dot)
    if unit is None:
        return 0.0
    if vectors is None:
        return float(axes.size)
    per_cycle = vectors.per_cycle * hardware.lanes(4)
    return unit.per_cycle * axes.size / per_cycle
