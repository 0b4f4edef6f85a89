"""Steps that change the graph of stages."""

from __future__ import annotations

from dataclasses import dataclass, field

from ansor.dag.contraction import Contraction
from ansor.program.steps.base import Phase, Step


@dataclass(frozen=True)
class Inline(Step):
    """Substitute `stage` into its consumers (rule 2, "always inline")."""

    phase = Phase.STRUCTURE

    stage: str


@dataclass(frozen=True)
class CacheWrite(Step):
    """Compute `stage` into a new buffer and let the new stage `copy` write the output (rule 5)."""

    phase = Phase.STRUCTURE

    stage: str
    copy: str


@dataclass(frozen=True)
class CacheRead(Step):
    """Let the new stage `copy` copy `buffer` and `stage` read the copy.

    If it is computed at a loop of `stage`, the copy has only the elements that the loops inside
    touch, packed. With `order`, dimension ``d`` of the copy is dimension ``order[d]`` of the
    buffer.
    """

    phase = Phase.STRUCTURE

    stage: str
    buffer: str
    copy: str
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class LayoutRewrite(Step):
    """Pack the constant `buffer` that `stage` reads. Its last dimension is split by `hole`. The
    outer part becomes the first dimension, the inner part the last. Zero keeps the plain layout.

    The decision `tiles`, if the program has it, splits the axis along that dimension. Panels then
    have columns in the order of tiles, see `ansor.program.layout.PackedLayout`.
    """

    phase = Phase.STRUCTURE

    stage: str
    buffer: str
    hole: str
    tiles: str = field(default="", kw_only=True)

    @property
    def distinguishing_holes(self) -> tuple[str, ...]:
        """See `Step`."""
        return (self.hole,)


@dataclass(frozen=True)
class DotProducts(Step):
    """Let `instruction` add up the products of `elements` neighbours along reduction `axis` of
    `stage`: an iteration of the axis is then one instruction.
    """

    phase = Phase.STRUCTURE

    stage: str
    axis: int
    elements: int
    instruction: str


@dataclass(frozen=True)
class GroupedCacheRead(CacheRead):
    """A `CacheRead` whose copy has groups of `elements` along dimension `dim` of the buffer as its
    last dimension. The dimensions before have the `order`; dimension `dim` counts groups.
    """

    dim: int = 0
    elements: int = 1


@dataclass(frozen=True)
class GroupedLayout(LayoutRewrite):
    """A `LayoutRewrite` that also moves groups of `elements` along dimension `dim` to the end."""

    dim: int
    elements: int


@dataclass(frozen=True)
class SplitAxis(Step):
    """Make two axes of spatial `axis` of `stage`: its quotient by `factor`, then the remainder.

    `factor` divides the extent. A `consumer` is an elementwise map of the stage's output. Its axis,
    and the dimension of the buffer between the two stages, are split in the same way.
    """

    phase = Phase.STRUCTURE

    stage: str
    axis: int
    factor: int
    consumer: str = ""


@dataclass(frozen=True)
class MoveAxis(Step):
    """Make spatial `axis` of `stage` its last one, which is vectorised.

    `consumer` maps the stage's output element by element. Its axes, and the dimensions of the
    buffer between the two stages, get the same order.
    """

    phase = Phase.STRUCTURE

    stage: str
    axis: int
    consumer: str


@dataclass(frozen=True)
class AsProduct(Step):
    """Make `stage` a product of matrices whose sizes are multiples of `multiple`. Its axes form the
    groups of `contraction`. Its operands become separate stages (`operand_names`).

    `consumer` maps the stage's output element by element and gets axes for rows and columns.
    """

    phase = Phase.STRUCTURE

    stage: str
    consumer: str
    contraction: Contraction
    multiple: int


@dataclass(frozen=True)
class RFactor(Step):
    """Split reduction `axis` of `stage` by `hole` and turn one part into a spatial axis (rule 6).

    `hole` has two columns, the outer and the inner factor. `inner=False` makes the outer part
    spatial and outermost (threads); `inner=True` makes the inner part spatial and innermost
    (vector lanes). The new stage is called `partial`.
    """

    phase = Phase.STRUCTURE

    stage: str
    axis: int
    hole: str
    partial: str
    inner: bool
