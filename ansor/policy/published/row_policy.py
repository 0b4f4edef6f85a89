"""`RowPolicy`: the common parts of the policies of other systems.

Such a policy moves over rows of integers and learns from measurements alone. The draft ranks
nothing; it may leave out programs that it expects to be slow.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ansor.annotate.sample import sample
from ansor.config.policies import ROW_SEARCH
from ansor.features.loop_tables import Floats
from ansor.policy.base import Policy
from ansor.policy.candidate import Candidate
from ansor.policy.published.moves import SketchGraph
from ansor.policy.published.random_rows import RandomRows
from ansor.program.decision import IntArray
from ansor.program.sketch import Population, Sketch

Change = Callable[[Sketch, IntArray], IntArray]  # other rows `[P, D]` of a sketch


@dataclass(eq=False, repr=False)
class RowPolicy(Policy):
    """A search without the learned cost model: see `Policy` for the arguments.

    A subclass implements `_plan`, and `_observe` where it learns.

    Attributes:
        use_filter: whether programs that the draft expects to be much slower than its best are left
            out (`RowSearchConfig.slow_factor`).
        number: the position of each sketch.
    """

    use_filter: bool = field(default=False, kw_only=True)
    number: dict[Sketch, int] = field(init=False)
    _waiting: list[Candidate] = field(default_factory=list, init=False)  # of the plan
    _best_draft: float = field(default=-np.inf, init=False)  # log-throughput
    _sample: list[Candidate] | None = field(default=None, init=False)  # behind the promise
    _spare: list[Candidate] = field(default_factory=list, init=False)  # random programs for later
    _sources: list[RandomRows] = field(init=False)
    _promise_rng: np.random.Generator = field(init=False)
    _graphs: dict[Sketch, SketchGraph] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.number = {sketch: i for i, sketch in enumerate(self.sketches)}
        # The promise has its separate randomness: asking for it does not change the search.
        self._promise_rng, rng = self.rng.spawn(2)
        self._sources = [RandomRows(sketch, rng) for sketch in self.sketches]

    @abstractmethod
    def _plan(self) -> list[Candidate]:
        """The programs to measure next, in order: different and unmeasured (`_considered`,
        `_random`). It is called when the last plan has been measured. An empty plan ends the
        search."""

    def _observe(self, done: Sequence[Candidate]) -> None:
        """Takes in measured programs, in order; the latency of a failed one is None."""

    def propose(self, count: int) -> list[Candidate]:
        """See `Policy`."""
        if self.use_filter:
            self._sampled()
        waiting = [c for c in self._waiting if c.signature not in self.measured] or self._plan()
        batch, self._waiting = waiting[:count], waiting[count:]
        self.exhausted = not waiting
        return batch

    def learn(self, candidates: Sequence[Candidate], latency_s: Sequence[float | None]) -> None:
        """See `Policy`."""
        super().learn(candidates, latency_s)
        self._observe([c.measured(t) for c, t in zip(candidates, latency_s, strict=True)])

    @property
    def promise_s(self) -> float:
        """Seconds of the best of a random sample by the draft."""
        return float(np.exp(-max((c.score for c in self._sampled()), default=-np.inf)))

    def draft_best(self) -> Candidate | None:
        """The unmeasured program of that sample with the best draft."""
        unseen = [c for c in self._sampled() if c.signature not in self.measured]
        return max(unseen, key=lambda c: c.score, default=None)

    def _sampled(self) -> list[Candidate]:
        """Legal random programs of all sketches, the same at every call."""
        if self._sample is None:
            drawn = [sample(s, ROW_SEARCH.sample, self._promise_rng) for s in self.sketches]
            self._sample = [c for p in drawn for c in self._considered(p.sketch, p.choices) if c]
        return self._sample

    def _remember(self, done: Sequence[Candidate]) -> None:
        """The cost model learns nothing: scores stay those of the draft."""

    def _considered(
        self, sketch: Sketch, rows: IntArray, taken: Collection[bytes] = ()
    ) -> list[Candidate | None]:
        """The programs of `rows [P, D]`; None where one is illegal, filtered, measured, `taken`, or
        equal to an earlier one."""
        if not len(rows):
            return []
        estimate = self.model.estimate(Population(sketch, rows), with_features=False)
        scores = self._filtered(np.where(estimate.legal, estimate.drafted, np.float32(-np.inf)))
        prefix, signature = sketch.name.encode(), estimate.signature
        considered: list[Candidate | None] = [None] * len(rows)
        seen = set(taken)
        for row in np.flatnonzero(np.isfinite(scores)):
            key = prefix + signature[row].tobytes()
            if key not in self.measured and key not in seen:
                considered[row] = Candidate(sketch, rows[row], float(scores[row]), key)
                seen.add(key)
        return considered

    def _filtered(self, scores: Floats) -> Floats:
        """`[P]`: the scores, minus infinity where the draft leaves the program out."""
        self._best_draft = max(self._best_draft, float(scores.max()))
        if not self.use_filter:
            return scores
        least = self._best_draft - np.log(ROW_SEARCH.slow_factor)
        return np.where(scores >= least, scores, np.float32(-np.inf))

    def _random(self, count: int, taken: Collection[bytes] = ()) -> list[Candidate]:
        """Up to `count` new random programs: of a uniform sketch, then uniform in its space."""
        fresh: dict[bytes, Candidate] = {}
        while len(fresh) < count:
            self._spare = self._spare or self._drawn(taken)
            if not self._spare:
                break
            drawn = self._spare.pop()
            if drawn.signature not in self.measured and drawn.signature not in taken:
                fresh.setdefault(drawn.signature, drawn)
        return list(fresh.values())

    def _drawn(self, taken: Collection[bytes]) -> list[Candidate]:
        """New programs of all sketches, shuffled; none where the spaces are used up."""
        size = ROW_SEARCH.sample
        for _ in range(ROW_SEARCH.draws):
            rows = [source.draw(size) for source in self._sources]
            pairs = zip(self.sketches, rows, strict=True)
            fresh = [
                c for sketch, drawn in pairs for c in self._considered(sketch, drawn, taken) if c
            ]
            if fresh:
                return [fresh[i] for i in self.rng.permutation(len(fresh))]
            size = min(2 * size, ROW_SEARCH.largest)
        return []

    def _until_new(self, children: Mapping[Sketch, IntArray], change: Change) -> list[Candidate]:
        """The children in order; a refused or known child is changed until it is new."""
        new: dict[bytes, Candidate] = {}
        for sketch, rows in children.items():
            left, length = rows, 1
            for _ in range(1 + ROW_SEARCH.paths if rows.shape[1] else 1):
                paths = [left]
                while len(paths) < length:
                    paths.append(change(sketch, paths[-1]))
                flat = np.stack(paths, axis=1).reshape(length * len(left), rows.shape[1])
                considered = self._considered(sketch, flat, new)
                firsts = [_first(considered[i : i + length]) for i in range(0, len(flat), length)]
                new |= {c.signature: c for c in firsts if c}
                left = paths[-1][[c is None for c in firsts]]
                if not len(left):
                    break
                left, length = change(sketch, left), ROW_SEARCH.path
        return list(new.values())

    def _graph(self, sketch: Sketch) -> SketchGraph:
        """The neighbours of the programs of a sketch."""
        if sketch not in self._graphs:
            self._graphs[sketch] = SketchGraph(sketch)
        return self._graphs[sketch]

    def _untiled(self) -> list[Candidate]:
        """Where G-BFS and N-A2C begin: of each sketch the program whose outermost loops do
        everything, with the first of all categories; or a random one where that is illegal."""
        starts: list[Candidate] = []
        for sketch in self.sketches:
            first = [
                d.table[:, 0].argmax() if d.table.shape[1] > 1 else 0 for d in sketch.decisions
            ]
            drawn = sample(sketch, ROW_SEARCH.sample, self.rng).choices
            rows = np.concatenate([np.asarray([first], dtype=np.int32), drawn])
            starts += [c for c in self._considered(sketch, rows) if c][:1]
        return starts


def _first(candidates: Sequence[Candidate | None]) -> Candidate | None:
    """The first candidate, if there is one."""
    return next((c for c in candidates if c), None)
