"""`LoopNest`: the loops of all stages, for a population."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ansor.program.nest.stage_nest import StageNest
from ansor.program.sketch import Population


@dataclass(eq=False)
class LoopNest:
    """The loop nests of all stages of a population: `stages[name]` is a `StageNest`."""

    population: Population
    stages: dict[str, StageNest] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """P, the number of programs."""
        return len(self.population)

    @cached_property
    def signature(self) -> npt.NDArray[np.int32]:
        """`[P, K]`: programs with equal rows are the same, even if their choices differ."""
        parts = [_stage_signature(nest) for nest in self.stages.values()]
        holes = self.population.sketch.roles.distinguishing_holes
        parts += [self.population.values(hole).T for hole in holes]
        return np.ascontiguousarray(np.concatenate(parts).T)


def _stage_signature(nest: StageNest) -> npt.NDArray[np.int32]:
    """`[K, P]`: extents and kinds of the loops of a stage."""
    parallel = nest.parallel[: nest.num_host or None].sum(0, dtype=np.int32)
    rows = np.stack([parallel, nest.executed < 1, nest.position > 0])
    return np.concatenate([nest.extents, rows]).astype(np.int32)
