"""`StageNest`: the loops around one stage, for a population."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ansor.dag.index import Atom, Index, Quotient
from ansor.dag.stage import Stage
from ansor.program.loop_structure import Loop

Column = npt.NDArray[np.int32]  # [P]


@dataclass(frozen=True, eq=False)
class StageNest:
    """The loops around one stage, outermost first.

    Attributes:
        loops: axis and part of each loop; the loops of the host come first.
        num_host: number of the loops of the host.
        extents: `[L, P] int32`, 1 where a host loop does not enclose the stage.
        steps: `steps[axis][loop]` is `[P]`: by how much the loop advances the axis; missing is 0.
        position: `[P]`, number of host loops around the stage (0: a separate nest).
        parallel: `[L, P] bool`; the loops that are fused and run on all cores.
        unrolled: `[L, P] bool`; the loops of the register tile, and of folded axes.
        vector: number of the loop that is vectorised, None for none.
        shuffles: `[P] int32`; exchanges between two vectors if the two innermost loops are a tile
            that is rearranged in registers, else 0.
        executed: `[P] float32`; share of the iterations that are executed; others read padding.
        guarded: `[L, P] bool`; the loops with a condition inside that leaves steps out.
        prefetch: `[4, P] int32`; least and most elements of a prefetched part of a constant. If
            the constant is read once, also the least elements of a run, and the distance. All are
            0 without prefetch.
        finishes: the stage whose tiles this one finishes as its fused consumer, None for none.
        prefetched_tile_bytes: the largest tile of a fused consumer's array that is prefetched
            before its turn; 0 for none.
        tile_instruction: that computes the innermost loops, "" for none.
        tile_depth: number of these loops.
        unroll_most: `[P]`: largest number of statements for which inner loops are unrolled, too.
    """

    stage: Stage
    loops: tuple[Loop, ...]
    num_host: int
    extents: npt.NDArray[np.int32]
    steps: dict[int, dict[int, Column]]
    position: Column
    parallel: npt.NDArray[np.bool_]
    unrolled: npt.NDArray[np.bool_]
    vector: int | None
    unroll_most: Column
    shuffles: Column
    executed: npt.NDArray[np.float32]
    guarded: npt.NDArray[np.bool_]
    prefetch: npt.NDArray[np.int32]
    finishes: str | None = None
    prefetched_tile_bytes: int = 0
    tile_instruction: str = ""
    tile_depth: int = 0

    @cached_property
    def density(self) -> npt.NDArray[np.float32]:
        """`[P]`: share of the unrolled statements that remain without products with constant zeros;
        1 unless all folded axes are unrolled."""
        folded = self.stage.folded
        own = [i for i, loop in enumerate(self.loops) if loop.axis in folded and i >= self.num_host]
        copies = self.extents[own].prod(axis=0, dtype=np.int64)
        whole = copies == math.prod(self.stage.axes[axis].size for axis in folded)
        density: npt.NDArray[np.float32]
        density = np.where(whole, np.float32(self.stage.density), np.float32(1))
        return density

    def coefficients(self, index: Index | None) -> dict[int, Column]:
        """By how much each loop advances an index, `[P]` each; loops that do not advance it are
        left out.

        A quotient of an axis (`index.in_blocks`) is rounded: a loop whose iterations advance it
        only sometimes counts as one that always or never does.
        """
        total: dict[int, Column] = {}
        for atom, factor in index.terms if index is not None else ():
            for loop, step in self._advances(atom).items():
                total[loop] = total[loop] + factor * step if loop in total else factor * step
        return total

    def _advances(self, atom: Atom) -> dict[int, Column]:
        """By how much each loop advances an axis, or the quotient of one."""
        if isinstance(atom, int):
            return self.steps.get(atom, {})
        if not isinstance(atom, Quotient) or (axis := atom.of_axis) is None:
            return {}
        divisor = atom.divisor
        return {
            loop: np.where(step * self.extents[loop] > divisor, (step + divisor // 2) // divisor, 0)
            for loop, step in self.steps.get(axis, {}).items()
        }
