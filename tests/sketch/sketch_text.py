"""Sketches as text for golden files: structure and integers, nothing that floats."""

from __future__ import annotations

import dataclasses

from ansor.program.decision import Decision
from ansor.program.sketch import Sketch
from ansor.program.steps import Step


def sketch_text(sketch: Sketch) -> str:
    """One line per step, one per decision."""
    return "\n".join(
        [_step_text(step) for step in sketch.steps]
        + [_decision_text(decision) for decision in sketch.decisions]
    )


def _step_text(step: Step) -> str:
    fields = [f"{key}={value}" for key, value in dataclasses.asdict(step).items()]
    return f"{type(step).__name__} {' '.join(map(str, fields))}"


def _decision_text(decision: Decision) -> str:
    choices, arity = decision.table.shape
    if arity == 1:
        return f"  {decision.name} of {decision.stage}: {decision.table[:, 0].tolist()}"
    first = int(decision.table[0].prod())
    return f"  {decision.name} of {decision.stage}: {first} in {arity} factors, {choices} ways"
