"""The structure of a sketch in a line, which tells the sketches of a task apart."""

from __future__ import annotations

from ansor.program.loop_structure import structure_of
from ansor.program.sketch import Sketch
from ansor.program.steps import RFactor


def structure_text(sketch: Sketch) -> str:
    """Structures of loops (`ansor.program.loop_structure`), fused stages, packed buffers and
    partial sums."""
    if sketch.by_hand:
        return "by hand"
    roles = sketch.roles
    shapes = [f"{name} {structure_of(shape)}" for name, shape in roles.shape.items()]
    fused = [f"{name} fused at level {step.level}" for name, step in roles.fused.items()]
    packed = [f"{buffer} packed" for buffer in roles.packed]
    sums = [f"{step.stage} in partial sums" for step in sketch.steps if isinstance(step, RFactor)]
    return ", ".join([*shapes, *fused, *packed, *sums])
