"""A partial sketch on its way through the rules."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ansor.dag import edit, operands
from ansor.dag.contraction import Contraction, as_product, operand_names
from ansor.dag.dot_products import as_dot_products, grouped_copy
from ansor.dag.graph import ComputeDAG
from ansor.dag.predicates import can_inline, is_inlinable
from ansor.dag.stage import Group
from ansor.program.decision import Decision
from ansor.program.steps import (
    AsProduct,
    CacheRead,
    CacheWrite,
    DotProducts,
    FuseConsumer,
    GroupedCacheRead,
    Inline,
    MultiLevelTile,
    RFactor,
    SplitAxis,
    Step,
)


@dataclass(frozen=True, eq=False)
class State:
    """Steps so far and the stages still to visit, the output first (the paper's (S, i))."""

    dag: ComputeDAG
    remaining: tuple[str, ...]
    steps: tuple[Step, ...] = ()
    decisions: tuple[Decision, ...] = ()

    @property
    def current(self) -> str:
        """The stage that rules examine next."""
        return self.remaining[0]

    def advance(self) -> State:
        """The same without the current stage among the remaining ones."""
        return replace(self, remaining=self.remaining[1:])

    def add(self, *steps: Step, decisions: tuple[Decision, ...] = ()) -> State:
        """The same with more steps."""
        return replace(self, steps=self.steps + steps, decisions=self.decisions + decisions)

    def inlined(self, name: str) -> State:
        """The same with a stage substituted into its consumers."""
        return replace(self, dag=edit.inline(self.dag, name)).add(Inline(name))

    def write_cached(self, copy: str) -> State:
        """The same with the current stage writing to a new buffer. The new stage `copy` copies it
        to the former output."""
        name = self.current
        return replace(self, dag=edit.cache_write(self.dag, name, copy)).add(CacheWrite(name, copy))

    def read_copied(self, buffer: str, copy: str, order: tuple[int, ...] = ()) -> State:
        """The same with the current stage reading the new stage `copy`, a copy of `buffer` with its
        dimensions in `order`."""
        name = self.current
        done = replace(self, dag=edit.cache_read(self.dag, name, buffer, copy, order))
        return done.add(CacheRead(name, buffer, copy, order))

    def dot_products(self, axis: int, elements: int, instruction: str) -> State:
        """The same with an instruction that adds up groups of products of the current stage."""
        name = self.current
        dag = as_dot_products(self.dag, name, axis, elements, instruction)
        return replace(self, dag=dag).add(DotProducts(name, axis, elements, instruction))

    def read_grouped(self, buffer: str, copy: str, order: tuple[int, ...], group: Group) -> State:
        """The same with the current stage reading the new stage `copy`, a copy of `buffer` with its
        dimensions in `order` and the elements of groups last."""
        name = self.current
        done = replace(self, dag=grouped_copy(self.dag, name, buffer, copy, order))
        return done.add(GroupedCacheRead(name, buffer, copy, order, group.dim, group.elements))

    def as_product(self, consumer: str, found: Contraction, multiple: int) -> State:
        """The same with the current stage as a product of padded matrices, and its consumer after
        it along their rows and columns."""
        name = self.current
        done = replace(self, dag=as_product(self.dag, name, consumer, found, multiple))
        left, right = operand_names(name)
        done = replace(done, remaining=(name, right, left, *self.remaining[1:]))
        return done.add(AsProduct(name, consumer, found, multiple))

    def factored(self, axis: int, rows: list[tuple[int, int]], inner: bool = False) -> State:
        """The same with reduction `axis` of the current stage split by one of `rows`. The partial
        stage is visited after it."""
        name = self.current
        hole, partial = f"{name}.rfactor", f"{name}.rf"
        dag = edit.rfactor(self.dag, name, axis, hole, partial, inner)
        decision = Decision(hole, partial, np.asarray(rows, dtype=np.int32))
        done = replace(self, dag=dag, remaining=(name, partial, *self.remaining[1:]))
        return done.add(RFactor(name, axis, hole, partial, inner), decisions=(decision,))

    @property
    def tiled(self) -> frozenset[str]:
        """Stages that are multi-level tiled."""
        return frozenset(s.stage for s in self.steps if isinstance(s, MultiLevelTile))

    @property
    def fused(self) -> frozenset[str]:
        """Stages that are fused into a tiled producer."""
        return frozenset(s.consumer for s in self.steps if isinstance(s, FuseConsumer))


def initial_state(dag: ComputeDAG) -> State:
    """The initial state: all stages remain, outputs first, after two changes that rules rely on.

    Tables of constants are inlined, because tiling depends on the axes that only choose constants.
    Stages that assemble tiles get axes along the tiles.
    """
    state = _along_tiles(_without_tables(State(dag, ())))
    return replace(state, remaining=tuple(reversed(state.dag.order)))


def _without_tables(state: State) -> State:
    for name in state.dag.order:
        if edit.is_table(state.dag.stages[name]) and can_inline(state.dag, name):
            state = state.inlined(name)
    return state


def _along_tiles(state: State) -> State:
    """Splits each axis whose quotient and remainder occur in reads, in the last stage of an
    elementwise chain."""
    for name in state.dag.order:
        if operands.parts(state.dag, name) and is_inlinable(state.dag, name):
            state = state.inlined(name)
    for name in state.dag.order:
        for axis, factor in reversed(operands.parts(state.dag, name).items()):
            dag = edit.split_axis(state.dag, name, axis, factor)
            state = replace(state, dag=dag).add(SplitAxis(name, axis, factor))
    return state
