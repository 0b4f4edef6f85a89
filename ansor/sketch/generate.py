"""Enumerates all structures that the rules derive from a compute definition (Ansor §4.1).

Deviation: the numbers of states and sketches are bounded. The paper's rules derive fewer than ten
sketches of a typical subgraph; the additional rules fork more often.
"""

from __future__ import annotations

from collections.abc import Iterable

from ansor.config import SketchConfig
from ansor.dag.graph import ComputeDAG
from ansor.sketch.rule import Rule, RuleContext
from ansor.sketch.state import State, initial_state
from ansor.targets.machine import M


def generate(
    dag: ComputeDAG,
    machine: M,
    rules: Iterable[Rule[M]],
    config: SketchConfig | None = None,
) -> list[State]:
    """Returns the terminal states, in a fixed order, up to `config.max_sketches`.

    Args:
        dag: the compute definition.
        machine: parameters of the machine, for the rules.
        rules: derivation rules, in the order in which they are tried.
        config: limits of the space.
    """
    config = config or SketchConfig()
    context, rules = RuleContext(machine, config), tuple(rules)
    queue, done = [initial_state(dag)], []
    while queue:
        state = queue.pop(0)
        if not state.remaining:
            done.append(state)
            continue
        queue = [*queue, *_derive(state, rules, context)][: config.max_states]
    return done[: config.max_sketches]


def _derive(state: State, rules: Iterable[Rule[M]], context: RuleContext[M]) -> list[State]:
    derived: list[State] = []
    for rule in rules:
        result = rule(state, context)
        derived += result.states
        if result.states and result.exclusive:
            break
    return derived
