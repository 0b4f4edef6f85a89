"""Steps that split, place and annotate loops."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.dag.padding import Padded
from ansor.program.steps.base import Phase, Step


@dataclass(frozen=True)
class MultiLevelTile(Step):
    """Tile `stage` after `structure`, e.g. "SSRSRS" (rule 3).

    `holes[a]` names the decision that splits axis `a`. It is "" for a folded axis, which stays
    whole. The decision has a column for each "S" of the structure for a spatial axis, and for each
    "R" for a reduction axis. The vector axis has one more for a "V". For the letters see
    `ansor.program.loop_structure`. Factors may multiply to more than the extent: then the last tile
    is moved back (see `tail`).
    """

    phase = Phase.TILE

    stage: str
    structure: str
    holes: tuple[str, ...]


@dataclass(frozen=True)
class RegisterTile(Step):
    """Tile an attached `stage` for registers: outer spatial loops, reduction, inner spatial loops.

    `holes[a]` names the decision for the largest size of the inner part of spatial axis `a`. The
    size is the largest divisor of the computed extent up to this limit. "" stands for a reduction
    axis, and for a spatial axis whose inner part is one element.
    """

    phase = Phase.PLACE

    stage: str
    holes: tuple[str, ...]


@dataclass(frozen=True)
class StripMine(Step):
    """Split spatial `axis` of an untiled `stage` by `hole` (two columns) and put the inner part
    innermost, inside any reduction, where it is vectorised.

    Without a hole the inner part is the largest divisor of the extent that `Vectorize` allows.
    """

    phase = Phase.TILE

    stage: str
    axis: int
    hole: str | None


@dataclass(frozen=True)
class Parallel(Step):
    """Fuse the `hole` outermost loops of `stage` and run them on all cores."""

    phase = Phase.BIND

    stage: str
    hole: str


@dataclass(frozen=True)
class FuseConsumer(Step):
    """Compute `consumer` at the end of spatial tile level `level` of the tiled `stage` (rule 4)."""

    phase = Phase.PLACE

    stage: str
    consumer: str
    level: int


@dataclass(frozen=True)
class ComputeAt(Step):
    """Compute `stage` at a loop of `host`; `hole` is the number of the host's loops around it.

    Zero means a separate loop nest at the root.
    """

    phase = Phase.PLACE

    stage: str
    host: str
    hole: str


@dataclass(frozen=True)
class Vectorize(Step):
    """Vectorise the innermost loop of `stage` (where more than one iteration is left).

    An attached stage's last spatial axis is split first, by its largest divisor up to `lanes`. If
    this divisor does not fill a `register` (in elements; 0 for none), the axis is split by a
    multiple of a register that need not divide it, and the last vector is moved back.
    """

    phase = Phase.ANNOTATE

    stage: str
    lanes: int
    register: int = 0


@dataclass(frozen=True)
class Transpose(Vectorize):
    """Vectorise the innermost loop of `stage`, a copy whose source is contiguous along the next
    loop around it. If both loops have `lanes` iterations, this square is loaded along the outer
    loop and transposed in registers.
    """


@dataclass(frozen=True)
class Interleave(Vectorize):
    """Vectorise the innermost loop of `stage`, a copy that puts neighbours of `rows` rows next to
    each other. If the next loop around it has `rows` iterations, the rows are loaded along the
    innermost loop and interleaved in registers.
    """

    rows: int = 1


@dataclass(frozen=True)
class Unroll(Step):
    """Unroll the register tile and the folded axes of `stage` explicitly. With a `hole`, further
    loops are unrolled up to this number of statements.
    """

    phase = Phase.ANNOTATE

    stage: str
    hole: str | None

    @property
    def distinguishing_holes(self) -> tuple[str, ...]:
        """See `Step`."""
        return () if self.hole is None else (self.hole,)


@dataclass(frozen=True)
class Initialise(Step):
    """Initialise the reduction of `stage` in a separate nest, outside the reduction loops."""

    phase = Phase.ANNOTATE

    stage: str


@dataclass(frozen=True)
class SkipPadding(Step):
    """If `hole` is 1, leave out the steps of the tiled reduction `stage` that read only zeros of
    `padded`. This applies to dimensions whose index no loop of the register tile moves.
    """

    phase = Phase.AFTER_SCHEDULING

    stage: str
    padded: tuple[Padded, ...]
    hole: str
