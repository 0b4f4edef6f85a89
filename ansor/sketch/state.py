"""A partial sketch on its way through the rules."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansor.dag import edit
from ansor.dag.graph import ComputeDAG
from ansor.dag.predicates import can_inline
from ansor.program.decision import Decision
from ansor.program.steps import FuseConsumer, Inline, MultiLevelTile, Step


@dataclass(frozen=True, eq=False)
class State:
    """Steps so far and the stages still to visit, the output first (the paper's (S, i))."""

    dag: ComputeDAG
    remaining: tuple[str, ...]
    steps: tuple[Step, ...] = ()
    decisions: tuple[Decision, ...] = ()

    @property
    def current(self) -> str:
        """The stage whose turn it is."""
        return self.remaining[0]

    def advance(self) -> State:
        """The same with the current stage done."""
        return replace(self, remaining=self.remaining[1:])

    def add(self, *steps: Step, decisions: tuple[Decision, ...] = ()) -> State:
        """The same with more steps."""
        return replace(self, steps=self.steps + steps, decisions=self.decisions + decisions)

    @property
    def tiled(self) -> frozenset[str]:
        """Stages that are multi-level tiled."""
        return frozenset(s.stage for s in self.steps if isinstance(s, MultiLevelTile))

    @property
    def fused(self) -> frozenset[str]:
        """Stages that are fused into a tiled producer."""
        return frozenset(s.consumer for s in self.steps if isinstance(s, FuseConsumer))


def start(dag: ComputeDAG) -> State:
    """The initial state: tables of constants inlined, all other stages to visit, outputs first.

    Whether a stage is tiled depends on which of its axes only choose constants.
    """
    tables = [n for n in dag.order if edit.is_table(dag.stages[n]) and can_inline(dag, n)]
    for name in tables:
        dag = edit.inline(dag, name)
    return State(dag, tuple(reversed(dag.order)), tuple(Inline(name) for name in tables))
