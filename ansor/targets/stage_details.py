"""`StageDetails`: registers, traffic and occupancy of a stage in one program, for users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RegisterTile:
    """The innermost, fully unrolled block of a stage.

    Attributes:
        extents: by axis, elements of one execution of the block.
        vector: elements of a vector statement.
        lanes: elements of a register.
        accumulators: registers of sums; 0 for a stage without a reduction.
        operands: registers of the operands of one statement.
        held: registers of operands with several uses, estimated.
        spilled: registers that one execution stores and reloads, estimated.
        available: registers of the machine.
        kind: of these registers, such as "vector registers".
        instruction: that adds up groups of products, "" for none.
    """

    extents: Mapping[str, int]
    vector: int
    lanes: int
    accumulators: float
    operands: float
    held: float
    spilled: float
    available: int
    kind: str
    instruction: str = ""

    @property
    def used(self) -> float:
        """Registers that the block needs."""
        return self.accumulators + self.operands + self.held


@dataclass(frozen=True)
class Transfer:
    """Bytes between two neighbouring levels of the memory hierarchy.

    Attributes:
        path: name of the two levels, such as "L2 to L1".
        bytes: of one run of the program.
        bytes_per_s: most bytes in a second, of all cores; infinite if it is not known.
    """

    path: str
    bytes: float
    bytes_per_s: float


@dataclass(frozen=True)
class StageDetails:
    """Details of a stage beside its time.

    Attributes:
        tile: the register tile; None if the kind of target describes none.
        transfers: from the registers outwards.
        occupancy: figures of a GPU's kernel by name.
    """

    tile: RegisterTile | None = None
    transfers: tuple[Transfer, ...] = ()
    occupancy: Mapping[str, float] = field(default_factory=dict)
