"""`Config`: what a template receives as `cfg`. Each call makes a knob, with AutoTVM's meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from tvm import te, tirx
from tvm.s_tir.schedule import LoopRV

from ansor.dag.from_tir.tensors import prim_func
from ansor.errors import ArgumentError
from ansor.program.decision import Decision, category
from ansor.templates.choices import Choices
from ansor.templates.knobs import Annotation, Knob, Reorder, Split
from ansor.templates.orders import annotation_choices, order_choices
from ansor.templates.schedule import Schedule
from ansor.templates.tile_tables import listed_tiles, tile_table

S = TypeVar("S", Split, Reorder, Annotation, Knob)
V = TypeVar("V")


class Config:
    """The knobs of one run of a template.

    Args:
        choices: the values of this run.

    Attributes:
        definition: what `schedule` was called with; None before.
        started: the schedule that `schedule` made; None before.
    """

    def __init__(self, choices: Choices, started: Schedule | None = None) -> None:
        self.definition: tirx.PrimFunc | None = None
        self.started = started
        self._choices = choices
        self._set: dict[str, Split | Reorder | Annotation | Knob] = {}

    def schedule(self, definition: tirx.PrimFunc | Sequence[te.Tensor]) -> Schedule:
        """A schedule of a definition.

        Args:
            definition: a PrimFunc, or TE tensors, inputs first.

        Raises:
            ArgumentError: the tensors do not make a function.
        """
        is_func = isinstance(definition, tirx.PrimFunc)
        self.definition = definition if is_func else prim_func(definition)
        self.started = Schedule(self.definition, self._choices)
        return self.started

    def split(
        self,
        name: str,
        loop: Any,
        parts: int = 2,
        policy: str = "factors",
        *,
        max_factor: int | None = None,
        no_tail: bool | None = None,
        filter: Callable[[Split], bool] | None = None,
        candidates: Sequence[Sequence[int]] | None = None,
    ) -> Split:
        """A knob that splits a loop.

        Args:
            name: of the knob.
            loop: a loop of the schedule, an axis of a TE tensor, or an extent.
            parts: number of loops after the split.
            policy: "factors", "power2" or "verbose", see `tile_table`.
            max_factor: the largest of all factors but the outermost.
            no_tail: whether factors multiply to the extent; by default with "factors" alone.
            filter: keeps a tile.
            candidates: the tiles to choose from, in place of a policy.

        Raises:
            ArgumentError: no tile is left, the name is taken, or an argument is wrong.
        """
        extent = self._extent(loop)
        if candidates is None:
            table = tile_table(extent, parts, policy, max_factor, no_tail)
        else:
            table = listed_tiles(extent, candidates, parts)
        if filter is not None:
            kept = [row for row in table.tolist() if filter(Split(tuple(row)))]
            table = np.asarray(kept, dtype=np.int32).reshape(-1, parts)
        return self._keep(name, Split(self._choices.choose(Decision(name, name, table))))

    def reorder(
        self,
        name: str,
        loops: Sequence[Any],
        policy: str = "all",
        *,
        candidates: Sequence[Sequence[Any]] = (),
        interval: tuple[int, int] = (0, 0),
        spatial: Sequence[Sequence[Any]] = (),
        reduce: Sequence[Sequence[Any]] = (),
    ) -> Reorder:
        """A knob that orders loops.

        Args:
            name: of the knob.
            loops: the loops, outermost first.
            policy: "identity", "all", "interval_all" (the loops of `interval`), "candidate" (the
                orders in `candidates`), or "interleave" (chains of `spatial` and `reduce` loops).
            candidates: orders, of loops or of their positions.
            interval: first position, and the one after the last.
            spatial: for each spatial axis its loops, outermost first.
            reduce: for each reduction axis its loops, outermost first.

        Raises:
            ArgumentError: no order is left, the name is taken, or an argument is wrong.
        """
        policy = "candidate" if candidates else policy
        found = order_choices(list(loops), policy, candidates, interval, spatial, reduce)
        return self._keep(name, Reorder(self._one_of(name, found)))

    def annotate(
        self, name: str, loops: Sequence[Any], policy: str, *, num_anchor: int = 1
    ) -> Annotation:
        """A knob that annotates loops.

        Args:
            name: of the knob.
            loops: the loops, outermost first.
            policy: what each loop may be: words of "none", "unroll" and "vec", joined by "_"; "try"
                is "none". Or "locate_cache", which chooses loops that hold caches.
            num_anchor: number of these loops.

        Raises:
            ArgumentError: no annotation is left, the name is taken, or an argument is wrong.
        """
        found = annotation_choices(len(loops), policy, num_anchor)
        return self._keep(name, Annotation(self._one_of(name, found)))

    def knob(self, name: str, candidates: Sequence[V]) -> V:
        """The chosen one of any candidates.

        Raises:
            ArgumentError: there are no candidates, or the name is taken.
        """
        chosen = self._one_of(name, list(candidates))
        self._keep(name, Knob(chosen))
        return chosen

    def __getitem__(self, name: str) -> Any:
        """A knob of this run, by its name.

        Raises:
            ArgumentError: there is none.
        """
        if name not in self._set:
            known = ", ".join(self._set) or "none so far"
            raise ArgumentError("name", name, f"no such knob; name one of the knobs: {known}")
        return self._set[name]

    def _keep(self, name: str, value: S) -> S:
        self._set[name] = value
        return value

    def _one_of(self, name: str, candidates: Sequence[V]) -> V:
        """Numbers stand for themselves in records, other candidates by their positions."""
        plain = all(isinstance(c, int) and not isinstance(c, bool) and c >= 0 for c in candidates)
        if plain and len(set(candidates)) == len(candidates):
            values = tuple(int(c) for c in candidates)  # type: ignore[call-overload]
        else:
            values, plain = tuple(range(len(candidates))), False
        (chosen,) = self._choices.choose(category(name, name, values, ordered=plain))
        return candidates[values.index(chosen)]

    def _extent(self, loop: Any) -> int:
        try:
            return _constant(loop, self.started)
        except (TypeError, ValueError, RuntimeError, IndexError) as error:
            remedy = "give a loop of the schedule with a constant extent, an axis, or a number"
            raise ArgumentError("loop", loop, remedy) from error


def _constant(loop: Any, sch: Schedule | None) -> int:
    """The extent of a loop, an axis, or a number."""
    if isinstance(loop, LoopRV) and sch is not None:
        return int(sch.get(loop).extent)
    if isinstance(loop, tirx.IterVar):
        return int(loop.dom.extent)
    return int(loop.extent) if isinstance(loop, tirx.For) else int(loop)
