"""`OpEvoPolicy`: evolution by q-random walks (Gao et al., arXiv 2006.05664)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ansor.config.policies import OpEvoConfig
from ansor.features.loop_tables import Floats
from ansor.policy.candidate import Candidate
from ansor.policy.published.moves import ChoiceGraph
from ansor.policy.published.row_policy import RowPolicy
from ansor.program.decision import Decision, IntArray, category
from ansor.program.sketch import Sketch


@dataclass(eq=False, repr=False)
class OpEvoPolicy(RowPolicy):
    """OpEvo: the sketch is one more categorical parameter.

    Deviation: OpEvo has one structure of programs. Here a parameter that some parents lack is
    inherited from the other parents, or drawn uniformly if no parent has it.
    """

    sizes: OpEvoConfig = field(default=OpEvoConfig(), kw_only=True)

    def _plan(self) -> list[Candidate]:
        parents = self.parents()
        if not parents or self.trials < self.sizes.parents:
            return self._random(self.sizes.children)
        new = self._until_new(self._children(parents), self._walked)
        return new + self._random(self.sizes.children - len(new), {c.signature for c in new})

    def parents(self) -> list[Candidate]:
        """The fastest programs. A failed one has throughput 0 and is never drawn as a parent."""
        by_latency = sorted(self.successes, key=lambda c: c.latency_s or np.inf)
        return by_latency[: self.sizes.parents]

    def _children(self, parents: Sequence[Candidate]) -> dict[Sketch, IntArray]:
        """Rows of the next generation by their sketch."""
        drawn = self._inherited([self.number[p.sketch] for p in parents], _throughput(parents))
        numbers = self._kinds.walked(drawn, self.sizes.walk, self.rng)
        children = {}
        for number, count in zip(*np.unique(numbers, return_counts=True), strict=True):
            sketch = self.sketches[number]
            columns = [self._genes(d, parents, int(count)) for d in sketch.decisions]
            rows = np.stack(columns, axis=1) if columns else np.empty((count, 0), dtype=np.int32)
            children[sketch] = self._walked(sketch, rows)
        return children

    def _genes(self, decision: Decision, parents: Sequence[Candidate], count: int) -> IntArray:
        """`[count] int32`: the choices that children inherit, before they walk."""
        choices = [_choice_of(decision, parent) for parent in parents]
        pairs = zip(choices, parents, strict=True)
        donors = [(choice, parent) for choice, parent in pairs if choice is not None]
        if not donors:
            return self.rng.integers(0, decision.size, count, dtype=np.int32)
        throughput = _throughput([parent for _, parent in donors])
        return self._inherited([choice for choice, _ in donors], throughput, count)

    def _inherited(
        self, values: Sequence[int], throughput: Floats, count: int | None = None
    ) -> IntArray:
        """`[count] int32`: values of parents, drawn in proportion to their throughput."""
        count = self.sizes.children if count is None else count
        picked = self.rng.choice(len(values), count, p=throughput / throughput.sum())
        return np.asarray(values, dtype=np.int32)[picked]

    def _walked(self, sketch: Sketch, rows: IntArray) -> IntArray:
        """`[P, D] int32`: the rows after a q-random walk of every decision."""
        return self._graph(sketch).walked(rows, self.sizes.walk, self.rng)

    @cached_property
    def _kinds(self) -> ChoiceGraph:
        """The graph of the sketches."""
        return ChoiceGraph(category("sketch", "", tuple(range(len(self.sketches))), ordered=False))


def _throughput(programs: Sequence[Candidate]) -> Floats:
    """`[P]`: programs per second."""
    return np.asarray([1 / (c.latency_s or np.inf) for c in programs])


def _choice_of(decision: Decision, parent: Candidate) -> int | None:
    """The choice of a parent for a decision of the same name, if both have the same table."""
    column = parent.sketch.column.get(decision.name)
    if column is None:
        return None
    table = parent.sketch.decisions[column].table
    is_same = table is decision.table or np.array_equal(table, decision.table)
    return int(parent.row[column]) if is_same else None
