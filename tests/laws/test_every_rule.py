"""What every derivation rule keeps to: those of CPUs and GPUs, and one of a test."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from definitions import HARDWARE, dag
from gpu import GPU

from ansor.config import SketchConfig
from ansor.sketch.rule import Derivation, Rule, RuleContext
from ansor.sketch.rules import CPU_RULES
from ansor.sketch.state import State, initial_state
from ansor.targets.cuda.rules.rules import GPU_RULES

DEFINITIONS = ("matmul_relu", "conv2d", "row_sum", "softmax", "total_sum", "depthwise_conv2d")
MOST_STATES = 64  # of a definition


def keep_relu(state: State, context: RuleContext[Any]) -> Derivation:
    """Leaves a stage with a name that ends in "relu" in separate loops."""
    if not state.current.endswith("relu"):
        return Derivation()
    return Derivation((state.advance(),), exclusive=True)


CASES = [
    *((rule, HARDWARE) for rule in (keep_relu, *CPU_RULES)),
    *((rule, GPU) for rule in GPU_RULES),
]
RULES = pytest.mark.parametrize(
    ("rule", "machine"), CASES, ids=[f"{rule.__name__}-{m.name}" for rule, m in CASES]
)


@cache
def visited(name: str, machine: Any) -> tuple[State, ...]:
    """States on the way to the sketches of a definition."""
    context = RuleContext(machine, SketchConfig())
    rules = CPU_RULES if machine is HARDWARE else GPU_RULES
    queue, found = [initial_state(dag(name))], list[State]()
    while queue and len(found) < MOST_STATES:
        state = queue.pop(0)
        if state.remaining:
            found.append(state)
            queue += [s for rule in rules for s in rule(state, context).states]
    return tuple(found)


def derived(rule: Rule[Any], machine: Any) -> Iterator[tuple[State, Derivation]]:
    """The states that a rule is asked about, and its answers."""
    context = RuleContext(machine, SketchConfig())
    for name in DEFINITIONS:
        for state in visited(name, machine):
            yield state, rule(state, context)


@RULES
def test_a_derived_state_goes_on_from_its_state(rule: Rule[Any], machine: Any) -> None:
    for state, found in derived(rule, machine):
        for after in found.states:
            assert after.steps[: len(state.steps)] == state.steps
            assert after.decisions[: len(state.decisions)] == state.decisions
            assert len(after.steps) > len(state.steps) or after.remaining != state.remaining
            assert set(after.remaining) <= set(after.dag.order)
            names = [decision.name for decision in after.decisions]
            assert len(set(names)) == len(names)
            assert all(decision.size for decision in after.decisions)


@RULES
def test_a_rule_answers_the_same_and_leaves_its_state(rule: Rule[Any], machine: Any) -> None:
    for state, first in derived(rule, machine):
        before = state.dag.text, state.steps, state.remaining
        again = rule(state, RuleContext(machine, SketchConfig()))
        assert (state.dag.text, state.steps, state.remaining) == before
        assert [s.steps for s in again.states] == [s.steps for s in first.states]
        assert [s.dag.text for s in again.states] == [s.dag.text for s in first.states]
        assert again.exclusive == first.exclusive
