"""Pseudo-code of a sketch, with its holes, or of a program, with its numbers; for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ansor.dag.stage import Stage
from ansor.program.loop_structure import Loop, own_loops
from ansor.program.nest import LoopNest, StageNest, build_nest
from ansor.program.roles import Roles
from ansor.program.sketch import Population, Sketch
from ansor.program.steps import ScheduleByHand

_INDENT = "  "
_UNKNOWN = "..."  # an extent that follows from where the stage is computed


@dataclass(frozen=True)
class _View:
    """One stage: a header per loop ("" for a loop not worth a line), and where it is computed.

    `position` counts the host's loops around it; 0 is a separate nest.
    """

    stage: Stage
    headers: tuple[str, ...]
    position: int = 0
    remark: str = ""


def show_sketch(sketch: Sketch) -> str:
    """The loops of a sketch; an extent such as ``conv.y[0]`` is column 0 of decision ``conv.y``.

    Of a schedule that a user wrote, its knobs and the definition.
    """
    sizes = {d.name: f"{d.size} choices" for d in sketch.decisions}
    loops = _listing(sketch.roles, {name: _sketch_view(sketch, name) for name in sketch.dag.order})
    return f"{_schedule_by_hand(sketch, sizes)}{loops}"


def show_program(population: Population, row: int = 0) -> str:
    """The loops of one program of a population; loops of one iteration are left out."""
    nest = build_nest(population.take([row]))
    roles = population.sketch.roles
    views = {name: _program_view(nest, roles, name) for name in population.sketch.dag.order}
    program = population.program(row)
    values = {hole: " x ".join(map(str, chosen)) for hole, chosen in program.values.items()}
    return f"{_schedule_by_hand(population.sketch, values)}{_listing(roles, views)}"


def _schedule_by_hand(sketch: Sketch, knobs: Mapping[str, str]) -> str:
    """A line that names the schedule that a user wrote, and its knobs; "" for other sketches."""
    for step in sketch.steps:
        if isinstance(step, ScheduleByHand):
            listed = ", ".join(f"{name}: {text}" for name, text in knobs.items())
            return f"# scheduled by hand: {step.name} ({listed})\n"
    return ""


def _listing(roles: Roles, views: dict[str, _View]) -> str:
    roots = [name for name in roles.dag.order if views[name].position == 0]
    return "\n".join(line for name in roots for line in _lines(roles, views, name, 0, 0))


def _lines(
    roles: Roles, views: dict[str, _View], name: str, depth: int, indent: int
) -> Iterator[str]:
    """The nest of `name` from loop `depth` on, with the stages computed inside it."""
    view = views[name]
    if depth == 0 and view.remark:
        yield f"{_INDENT * indent}# {view.remark}"
    yield from _attached(roles, views, name, depth, indent, fused=False)
    if depth == len(view.headers):
        yield _INDENT * indent + _statement(view.stage)
    else:
        header = view.headers[depth]
        if header:
            yield f"{_INDENT * indent}{header}:"
        yield from _lines(roles, views, name, depth + 1, indent + bool(header))
    yield from _attached(roles, views, name, depth, indent, fused=True)


def _attached(
    roles: Roles, views: dict[str, _View], host: str, depth: int, indent: int, fused: bool
) -> Iterator[str]:
    """Producers computed before the host's loop `depth`, or consumers fused after it."""
    for name in roles.dag.order if depth else ():
        here = roles.host.get(name) == host and views[name].position == depth
        if here and (name in roles.fused) == fused:
            yield from _lines(roles, views, name, 0, indent)


def _statement(stage: Stage) -> str:
    reads = ", ".join(dict.fromkeys(read.buffer for read in stage.reads))
    sign = f"<-{(stage.reducer or 'reduce').lower()}-" if stage.reduce else "<-"
    return f"{stage.name} {sign} {reads}"


def _label(stage: Stage, loop: Loop) -> str:
    return f"{stage.axes[loop.axis].name}.{loop.part}"


def _sketch_view(sketch: Sketch, name: str) -> _View:
    roles, stage = sketch.roles, sketch.dag.stages[name]
    loops = own_loops(stage, roles.shape.get(name))
    register, bindings = roles.unrolled(name), roles.bindings(name)
    headers = []
    for number, loop in enumerate(loops):
        last = number == len(loops) - 1 and not loop.reduce
        kind = "vectorize" if last and name in roles.vector else "for"
        kind = "unroll" if number in register else bindings.get(number, kind)
        headers.append(f"{kind} {_label(stage, loop)} in {_extent(roles, stage, loop)}")
    position = roles.fixed_position(name) or 0
    return _View(stage, tuple(headers), position, _remark(roles, name))


def _extent(roles: Roles, stage: Stage, loop: Loop) -> str:
    hole = roles.hole_of(stage.name, loop.axis)
    if hole is not None:
        return f"{hole}[{loop.part}]"
    extent = stage.axes[loop.axis].extent
    known = isinstance(extent, int) and stage.name not in roles.host
    return str(extent) if known else _UNKNOWN


def _remark(roles: Roles, name: str) -> str:
    if name in roles.located:
        step = roles.located[name]
        return f"{step.hole}: here, or inside that many loops of {step.host}"
    remarks = []
    if name in roles.parallel:
        hole = roles.parallel[name]
        remarks.append(f"{hole}: how many of the outermost loops are fused and parallel")
    if name in roles.skipping:
        remarks.append(f"{roles.skipping[name].hole}: whether steps on padding are left out")
    if name in roles.prefetch:
        remarks.append(
            f"{roles.prefetch[name].hole}: whether {roles.prefetch[name].buffer} is prefetched"
        )
    return "; ".join(remarks)


def _program_view(nest: LoopNest, roles: Roles, name: str) -> _View:
    stage = nest.stages[name]
    unroll = roles.unroll.get(name)
    steps = int(nest.population.values(unroll)[0, 0]) if unroll else 0
    remarks = [f"unroll further loops up to {steps} statements"] if steps else []
    if stage.executed[0] < 1:
        remarks.append(f"steps on padding left out: {1 - stage.executed[0]:.0%}")
    if stage.prefetch.any():
        remarks.append(f"{roles.prefetch[name].buffer} prefetched")
    outside = nest.stages[roles.host[name]].num_host if name in roles.host else 0
    position = int(stage.position[0]) - outside
    return _View(stage.stage, _headers(stage, roles), position, "; ".join(remarks))


def _headers(nest: StageNest, roles: Roles) -> tuple[str, ...]:
    """Headers of the stage's own loops; fused parallel loops share the first one's."""
    extents = nest.extents[:, 0]
    own = range(nest.num_host, len(nest.loops))
    labels = {i: _label(nest.stage, nest.loops[i]) for i in own}
    wide = [i for i in own if extents[i] > 1]
    fused = [i for i in wide if nest.parallel[i, 0]]
    bindings = roles.bindings(nest.stage.name)
    kinds = {i: bindings.get(i - nest.num_host, _kind(nest, i)) for i in wide}
    headers = {i: f"{kinds[i]} {labels[i]} in {extents[i]}" for i in wide}
    if fused:
        headers |= dict.fromkeys(fused, "")
        names = ", ".join(labels[i] for i in fused)
        headers[fused[0]] = f"parallel {names} in {' x '.join(str(extents[i]) for i in fused)}"
    return tuple(headers.get(i, "") for i in own)


def _kind(nest: StageNest, loop: int) -> str:
    if loop == nest.vector:
        return "vectorize"
    return "unroll" if bool(np.any(nest.unrolled[loop])) else "for"
