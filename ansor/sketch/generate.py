"""Enumerates all structures that the rules derive from a compute definition (Ansor §4.1)."""

from __future__ import annotations

from collections.abc import Iterable

from ansor.config import SketchConfig
from ansor.dag.graph import ComputeDAG
from ansor.sketch.rule import Context, Rule
from ansor.sketch.rules import CPU_RULES
from ansor.sketch.state import State, start
from ansor.targets.cuda.machine import Gpu, Machine
from ansor.targets.cuda.rules.rules import GPU_RULES


def generate(
    dag: ComputeDAG,
    hardware: Machine,
    config: SketchConfig | None = None,
    user_rules: Iterable[Rule] = (),
) -> list[State]:
    """Returns the terminal states, in a fixed order, the first of them where there are many.

    Args:
        dag: the compute definition.
        hardware: what the rules need to know of the machine.
        config: limits of the space.
        user_rules: tried before the built-in ones, in order.
    """
    config = config or SketchConfig()
    context = Context(hardware, config)
    built_in = GPU_RULES if isinstance(hardware, Gpu) else CPU_RULES
    rules = (*user_rules, *built_in)
    queue, done = [start(dag)], []
    while queue:
        state = queue.pop(0)
        if not state.remaining:
            done.append(state)
            continue
        queue = [*queue, *_derive(state, rules, context)][: config.max_states]
    return done[: config.max_sketches]


def _derive(state: State, rules: Iterable[Rule], context: Context) -> list[State]:
    derived: list[State] = []
    for rule in rules:
        result = rule(state, context)
        derived += result.states
        if result.states and result.exclusive:
            break
    return derived
