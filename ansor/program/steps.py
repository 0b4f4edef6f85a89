"""The scheduling acts a sketch is made of, as frozen data.

A step names stages and *holes* (decisions that a program fills); it never holds a chosen number.
Two interpreters read the same steps in the same order: `lower` (one program, TensorIR) and
`nest` (a population, NumPy). Source: Ansor §4.1, Table 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansor.dag.contraction import Contraction
from ansor.dag.padding import Padded


@dataclass(frozen=True)
class Inline:
    """Substitute `stage` into its consumers (rule 2, "always inline")."""

    stage: str


@dataclass(frozen=True)
class CacheWrite:
    """Compute `stage` into a new buffer and let the new stage `copy` write the output (rule 5)."""

    stage: str
    copy: str


@dataclass(frozen=True)
class CacheRead:
    """Let the new stage `copy` copy `buffer` and `stage` read the copy.

    Computed at a loop of `stage`, the copy holds just what the loops inside touch, packed. With
    `order`, dimension ``d`` of the copy is dimension ``order[d]`` of the buffer.
    """

    stage: str
    buffer: str
    copy: str
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class LayoutRewrite:
    """Ask for the constant `buffer` that `stage` reads packed: its last dimension is split by
    `hole`, the outer part comes first of all, the inner part last. Zero leaves it as it is.
    """

    stage: str
    buffer: str
    hole: str


@dataclass(frozen=True)
class SplitAxis:
    """Make two axes of spatial `axis` of `stage`: its quotient by `factor`, then the remainder.

    Where `consumer` is named, it maps the stage's output element by element: its own axis and the
    dimension of the buffer between the two are split alike. `factor` divides the extent.
    """

    stage: str
    axis: int
    factor: int
    consumer: str = ""


@dataclass(frozen=True)
class MoveAxis:
    """Make spatial `axis` of `stage` its last one, which is vectorised.

    `consumer` maps the stage's output element by element: its own axes and the dimensions of the
    buffer between the two get the same order.
    """

    stage: str
    axis: int
    consumer: str


@dataclass(frozen=True)
class AsProduct:
    """Make `stage` a product of matrices whose sizes are multiples of `multiple`, its axes in the
    groups of `contraction`; its operands become stages of their own (`operand_names`).

    `consumer` maps the stage's output element by element and gets axes for rows and columns.
    """

    stage: str
    consumer: str
    contraction: Contraction
    multiple: int


@dataclass(frozen=True)
class RFactor:
    """Split reduction `axis` of `stage` by `hole` and turn one part into a spatial axis (rule 6).

    `hole` has two columns, the outer and the inner factor. `inner=False` makes the outer part
    spatial and outermost (threads); `inner=True` makes the inner part spatial and innermost
    (vector lanes). The new stage is called `partial`.
    """

    stage: str
    axis: int
    hole: str
    partial: str
    inner: bool


@dataclass(frozen=True)
class MultiLevelTile:
    """Tile `stage` after `structure`, e.g. "SSRSRS" (rule 3).

    `holes[a]` names the decision that splits axis `a`, "" for an axis that stays whole (a folded
    one); a spatial axis has as many columns as the structure has "S" (the vector axis one more
    where there is a "V"), a reduction axis as it has "R". Letters: see `ansor.program.loops`.
    Factors may multiply to more than the extent: then the last tile is moved back (see `tail`).
    """

    stage: str
    structure: str
    holes: tuple[str, ...]


@dataclass(frozen=True)
class RegisterTile:
    """Tile an attached `stage` for registers: outer spatial loops, reduction, inner spatial loops.

    `holes[a]` names the decision that says how large the inner part of spatial axis `a` may be:
    it is the largest divisor of what is computed there. "" for a reduction axis, and for a spatial
    one whose inner part is one element.
    """

    stage: str
    holes: tuple[str, ...]


@dataclass(frozen=True)
class StripMine:
    """Split spatial `axis` of an untiled `stage` by `hole` (two columns) and put the inner part
    innermost, inside any reduction, where it is vectorised.

    Without a hole the inner part is the largest divisor of the extent that `Vectorize` allows.
    """

    stage: str
    axis: int
    hole: str | None


@dataclass(frozen=True)
class Parallel:
    """Fuse the outermost loops of `stage`, as many as `hole` says, and run them on all cores."""

    stage: str
    hole: str


@dataclass(frozen=True)
class FuseConsumer:
    """Compute `consumer` at the end of spatial tile level `level` of the tiled `stage` (rule 4)."""

    stage: str
    consumer: str
    level: int


@dataclass(frozen=True)
class ComputeAt:
    """Compute `stage` at a loop of `host`; `hole` says how many of the host's loops enclose it.

    Zero means a loop nest of its own at the root.
    """

    stage: str
    host: str
    hole: str


@dataclass(frozen=True)
class Vectorize:
    """Vectorise the innermost loop of `stage` (where more than one iteration is left).

    An attached stage's last spatial axis is split first, by its largest divisor up to `lanes`.
    Where that does not fill a `register` (elements; 0 for never), it is split by a multiple of one
    that need not divide it, and the last vector is moved back.
    """

    stage: str
    lanes: int
    register: int = 0


@dataclass(frozen=True)
class Transpose(Vectorize):
    """Vectorise the innermost loop of `stage`, a copy that is dense in its source along the loop
    around that. Where both have as many iterations as there are `lanes`, that square is loaded
    along the outer one and transposed in registers.
    """


@dataclass(frozen=True)
class Unroll:
    """Unroll the register tile and the folded axes of `stage` explicitly, and further loops up to
    `hole` statements where there is one.
    """

    stage: str
    hole: str | None


@dataclass(frozen=True)
class Initialise:
    """Initialise the reduction of `stage` in a nest of its own, outside the reduction loops."""

    stage: str


@dataclass(frozen=True)
class SkipPadding:
    """Leave out the steps of the tiled reduction `stage` that meet only zeros of `padded`, where
    `hole` is 1: along dimensions whose index no loop of the register tile moves.
    """

    stage: str
    padded: tuple[Padded, ...]
    hole: str


@dataclass(frozen=True)
class Prefetch:
    """Where `hole` is 1, prefetch what the tiled `stage` reads of the constant `buffer` before its
    turn: while a part of at least and at most so many `elements` is read again and again, the part
    that lies after it in memory; where none is, but at least `run` are read without a gap, what
    lies `distance` elements ahead.
    """

    stage: str
    buffer: str
    elements: tuple[int, int]
    run: int
    distance: int
    hole: str


@dataclass(frozen=True)
class BindTiles:
    """Run the tiles of `stage` on a GPU: each of its three outermost levels of spatial loops is
    fused; they become blocks, virtual threads and the threads of a block.
    """

    stage: str


@dataclass(frozen=True)
class BindLoops:
    """Fuse the outermost spatial loops of an untiled `stage` and deal them out to the threads of a
    GPU, `hole` of them to a block.
    """

    stage: str
    hole: str


@dataclass(frozen=True)
class BindRows:
    """Let each block of a GPU compute a row of `stage`: its `rows` outermost loops, fused, number
    the blocks, the other spatial loops, fused, are dealt out to `hole` threads.
    """

    stage: str
    rows: int
    hole: str


@dataclass(frozen=True)
class Store:
    """Keep what `stage` writes in a memory of the GPU: "local" (registers) or "shared"."""

    stage: str
    scope: str


@dataclass(frozen=True)
class CooperativeFetch:
    """Compute `stage` into shared memory, at the outermost reduction level of the tiled `host`.

    Its loops are fused and dealt out to the threads of the block, up to `hole` elements to each at
    a time, as a vector: the greatest common divisor of that and the length of its rows. With a
    `pad` of 1, or 2, the rows are as far apart as `padded_row` says.
    """

    stage: str
    host: str
    hole: str
    pad: str


@dataclass(frozen=True)
class ReduceInBlock:
    """Compute the reduction `stage` once per row of `host`: all threads of the block share its
    reduction loops, fused, and add up what each of them has (cross-thread reduction).
    """

    stage: str
    host: str


@dataclass(frozen=True)
class ComputePerThread:
    """Compute `stage` inside the spatial loops of the untiled `host`, for the elements that one
    thread of it needs.
    """

    stage: str
    host: str


@dataclass(frozen=True)
class TensorTile(MultiLevelTile):
    """Tile a product of matrices for tensor cores.

    The `structure` ends in "T", the tile of one instruction: 16 by 16 by 16 along `matrix`, the
    numbers of the axes of rows, columns and reduction.
    """

    matrix: tuple[int, int, int]


@dataclass(frozen=True)
class BindWarps:
    """Run the tiles of `stage` on tensor cores: its two outermost levels of spatial loops, fused,
    become blocks and the warps of a block.
    """

    stage: str


@dataclass(frozen=True)
class CooperativeStore(FuseConsumer):
    """Compute `consumer` once per block, with all threads: its loops are fused and dealt out, up to
    `hole` elements to each at a time, as a vector.
    """

    hole: str


@dataclass(frozen=True)
class StoreFragment(FuseConsumer):
    """Compute `consumer`, a copy of the result of tensor cores, for the tiles of each warp."""


@dataclass(frozen=True)
class LoadFragment:
    """Compute `stage`, a copy of an operand, into the registers of a warp, at the inner reduction
    level of `host`; `operand` is "a" or "b".
    """

    stage: str
    host: str
    operand: str


@dataclass(frozen=True)
class Tensorize:
    """Let the innermost tiles of `stage`, of the `loads` of its operands and of the `store` of its
    result be the tensor unit's instructions; either operand may lie `transposed`, and the statement
    may name the right one first (`swapped`).
    """

    stage: str
    loads: tuple[str, str]
    store: str
    transposed: tuple[bool, bool]
    swapped: bool


@dataclass(frozen=True)
class Pipeline:
    """Fetch operands of the tiled `stage` ahead: as many rounds of its outermost reduction loops as
    `hole` says, in one buffer more than that; with `asynchronous` copies where the GPU has them.

    Those loops are fused; with no more rounds than that there is nothing to do ahead.
    """

    stage: str
    hole: str
    asynchronous: bool


Structural = (
    Inline | CacheWrite | CacheRead | LayoutRewrite | SplitAxis | MoveAxis | AsProduct | RFactor
)
Bind = BindTiles | BindLoops | BindRows | BindWarps
# Attached where no decision says.
Placed = CooperativeFetch | ReduceInBlock | ComputePerThread | LoadFragment


Step = (
    Inline
    | CacheWrite
    | CacheRead
    | LayoutRewrite
    | SplitAxis
    | MoveAxis
    | AsProduct
    | RFactor
    | MultiLevelTile
    | RegisterTile
    | StripMine
    | Parallel
    | FuseConsumer
    | ComputeAt
    | Vectorize
    | Transpose
    | Unroll
    | Initialise
    | SkipPadding
    | Prefetch
    | BindTiles
    | BindLoops
    | BindRows
    | Store
    | CooperativeFetch
    | ReduceInBlock
    | ComputePerThread
    | TensorTile
    | BindWarps
    | CooperativeStore
    | StoreFragment
    | LoadFragment
    | Tensorize
    | Pipeline
)


def telling_holes(step: Step) -> tuple[str, ...]:
    """Decisions of which every choice makes another program. What others come to is seen in the
    loops: there several choices may be one."""
    match step:
        case LayoutRewrite(hole=str(hole)) | Unroll(hole=str(hole)) | Pipeline(hole=str(hole)):
            return (hole,)
        case BindLoops(hole=str(hole)) | BindRows(hole=str(hole)):
            return (hole,)
        case CooperativeFetch(pad=str(pad)):
            return (pad,)
        case _:
            return ()
