"""A class of steps that the package does not know, added through its seams alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from definitions import HARDWARE, workload

from ansor.annotate.complete import complete
from ansor.annotate.sample import sample
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.lowering.lower import lower
from ansor.lowering.replay import Replay
from ansor.lowering.steps.apply import apply
from ansor.program.codec import decode, encode
from ansor.program.nest import build_nest
from ansor.program.pseudo_code import show_program
from ansor.program.steps import Phase, Step
from ansor.sketch.generate import generate
from ansor.sketch.rule import Derivation, RuleContext
from ansor.sketch.rules import CPU_RULES
from ansor.sketch.state import State
from ansor.targets.build import ENTRY, compile_function

MARK = "pragma_loop_partition_hint"


@dataclass(frozen=True)
class MarkLoop(Step):
    """Marks the outermost loop of `stage`."""

    phase = Phase.ANNOTATE

    stage: str


@apply.register
def mark_loop(step: MarkLoop, replay: Replay) -> None:
    replay.sch.annotate(replay.loops_of(step.stage)[0], MARK, 1)


def mark_output(state: State, context: RuleContext[Any]) -> Derivation:
    """A rule: the output is marked, once."""
    marked = any(isinstance(step, MarkLoop) for step in state.steps)
    if marked or not state.dag.is_output(state.current):
        return Derivation()
    return Derivation((state.add(MarkLoop(state.current)),), exclusive=True)


def test_a_rule_and_a_handler_are_enough() -> None:
    func, config = workload("matmul_relu").func, SketchConfig()
    states = generate(read_dag(func), HARDWARE, (mark_output, *CPU_RULES), config)
    sketches = [complete(state, HARDWARE, config) for state in states]
    assert sketches
    for sketch in sketches:
        population = sample(sketch, 4, np.random.default_rng(0))
        assert len(build_nest(population).signature) == 4
        assert sketch.dag.order[-1] in show_program(population)
        program = population.program(0)
        assert decode(encode(program)) == program
        scheduled = lower(func, program)
        assert scheduled.script().count(MARK) == 1
        assert_right(compile_function(scheduled, "llvm"))


def assert_right(compiled: Any) -> None:
    definition = workload("matmul_relu")
    rng = np.random.default_rng(0)
    shapes = [tuple(map(int, tensor.shape)) for tensor in definition.tensors]
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes[:-1]]
    out = tvm.runtime.tensor(np.full(shapes[-1], np.nan, np.float32))
    compiled[ENTRY](*map(tvm.runtime.tensor, inputs), out)
    np.testing.assert_allclose(out.numpy(), definition.reference(*inputs), rtol=1e-4, atol=1e-4)
