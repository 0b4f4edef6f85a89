"""The enumeration of all structures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from definitions import HARDWARE, NAMES, dag
from tvm import te

from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.program.steps import FuseConsumer, Inline, MultiLevelTile
from ansor.sketch.generate import generate
from ansor.sketch.rule import Derivation, RuleContext
from ansor.sketch.rules import CPU_RULES
from ansor.sketch.state import State


def steps(states: list[State]) -> list[tuple]:
    return [state.steps for state in states]


@pytest.mark.parametrize("name", NAMES)
def test_generation_is_deterministic_and_complete(name: str) -> None:
    first, second = (
        generate(dag(name), HARDWARE, CPU_RULES),
        generate(dag(name), HARDWARE, CPU_RULES),
    )
    assert steps(first) == steps(second)
    assert len(set(steps(first))) == len(first)
    assert all(not state.remaining for state in first)


def test_a_matmul_with_relu_is_tiled_and_fused() -> None:
    found = generate(dag("matmul_relu"), HARDWARE, CPU_RULES)
    fusions = [step for state in found for step in state.steps if isinstance(step, FuseConsumer)]
    assert {step.level for step in fusions} == {1, 2}
    assert all(any(isinstance(s, MultiLevelTile) for s in state.steps) for state in found)


def test_user_rules_come_first_and_may_exclude_all_others() -> None:
    seen: list[str] = []

    def leave_alone(state: State, context: RuleContext[Any]) -> Derivation:
        seen.append(state.current)
        return Derivation((state.advance(),), exclusive=True)

    (only,) = generate(dag("conv2d"), HARDWARE, [leave_alone, *CPU_RULES])
    assert only.steps == ()
    assert seen == ["compute", "add", "conv", "padded"]


def test_user_rules_add_to_the_others() -> None:
    def keep_bias(state: State, context: RuleContext[Any]) -> Derivation:
        return Derivation((state.advance(),)) if state.current == "add" else Derivation()

    found = generate(dag("conv2d"), HARDWARE, [keep_bias, *CPU_RULES])
    inlined = [Inline("add") in state.steps for state in found]
    assert True in inlined
    assert False in inlined


def test_a_user_rule_that_does_not_apply_changes_nothing() -> None:
    def never(state: State, context: RuleContext[Any]) -> Derivation:
        return Derivation()

    plain = generate(dag("conv2d"), HARDWARE, CPU_RULES)
    assert steps(generate(dag("conv2d"), HARDWARE, [never, *CPU_RULES])) == steps(plain)


def test_the_number_of_sketches_is_bounded() -> None:
    config = replace(SketchConfig(), max_sketches=2)
    assert len(generate(dag("softmax"), HARDWARE, CPU_RULES, config)) == 2


def test_many_choices_do_not_multiply() -> None:
    """Each of the sums may be split for lanes or not: 2^18 structures."""
    matrix = te.placeholder((64, 96), name="A")

    def row_sum(number: int) -> te.Tensor:
        k = te.reduce_axis((0, 96), name="k")
        return te.compute((64,), lambda i: te.sum(matrix[i, k], axis=k), name=f"S{number}")

    sums = [row_sum(number) for number in range(18)]
    total = te.compute((64,), lambda i: sum((s[i] for s in sums[1:]), sums[0][i]), name="T")
    found = generate(read_dag(te.create_prim_func([matrix, total])), HARDWARE, CPU_RULES)
    assert len(found) == SketchConfig().max_sketches
    assert len(set(steps(found))) == len(found)
