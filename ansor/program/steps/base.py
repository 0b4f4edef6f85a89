"""The base class of steps: a phase, and the decisions that distinguish programs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar


class Phase(IntEnum):
    """When a step is replayed: a later phase relies on the earlier ones.

    Fusing a consumer into a stage comes after the placement of that stage, and before the
    placement of stages inside it. So steps that fuse and steps that place stages share one phase.
    """

    STRUCTURE = 0  # the graph of stages changes
    STORE = 1  # the memory that a stage writes to
    TILE = 2  # loops of stages with a nest of their own are split and ordered
    BIND = 3  # loops become cores, blocks or threads
    PLACE = 4  # stages are computed inside the loops of other stages
    ANNOTATE = 5  # vectors, unrolling, initialisation, instructions
    AFTER_SCHEDULING = 6  # rewrites that TVM's schedule cannot express


@dataclass(frozen=True)
class Step:
    """One scheduling step, a frozen dataclass of names and numbers.

    A subclass states its phase once. The lowering registers how it is replayed
    (`ansor.lowering.steps.apply`), and `ansor.program.nest` what it means for a population.
    """

    phase: ClassVar[Phase]
    kinds: ClassVar[dict[str, type[Step]]] = {}  # every class of steps by name

    def __init_subclass__(cls) -> None:
        """Notes the class.

        Raises:
            TypeError: neither the class nor a base class states a phase.
        """
        if not hasattr(cls, "phase"):
            raise TypeError(f"the step {cls.__name__} states no phase")
        Step.kinds[cls.__name__] = cls

    @property
    def distinguishing_holes(self) -> tuple[str, ...]:
        """Decisions whose every choice makes a different program.

        The choices of all other decisions determine loops, and several choices may give the same
        loops.
        """
        return ()
