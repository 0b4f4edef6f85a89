"""The values of a template's knobs, and their application to a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm.s_tir import Schedule


@dataclass(frozen=True)
class Split:
    """A tile. `size` has the extents of its loops, outermost first."""

    size: tuple[int, ...]

    def apply(self, sch: Schedule, loop: Any) -> list[Any]:
        """Splits a loop; returns the loops, outermost first."""
        return list(sch.split(loop, factors=[None, *self.size[1:]]))


@dataclass(frozen=True)
class Reorder:
    """An order. Loop `perm[i]` of those that were given comes at place i."""

    perm: tuple[int, ...]

    def apply(self, sch: Schedule, loops: Sequence[Any]) -> list[Any]:
        """Reorders loops; returns them in their new order."""
        ordered = [loops[number] for number in self.perm]
        sch.reorder(*ordered)
        return ordered


@dataclass(frozen=True)
class Annotation:
    """Annotation of each loop: "none", "unroll" or "vec"; or, of the policy "locate_cache", the
    numbers of the loops that hold caches."""

    anns: tuple[Any, ...]

    def apply(
        self, sch: Schedule, loops: Sequence[Any], source: Sequence[Sequence[Any]] | None = None
    ) -> list[Any]:
        """Annotates loops and returns them.

        Args:
            sch: the schedule.
            loops: as many as the knob was made with.
            source: of the policy "locate_cache": for each chosen loop the blocks to compute there.
        """
        for blocks, number in zip(source or (), self.anns, strict=False):
            for block in blocks:
                sch.compute_at(block, loops[number])
        primitives = {"unroll": sch.unroll, "vec": sch.vectorize}
        for loop, annotation in zip(loops, self.anns, strict=False):
            if annotation in primitives:
                primitives[annotation](loop)
        return list(loops)


@dataclass(frozen=True)
class Knob:
    """A candidate, `val`."""

    val: Any
