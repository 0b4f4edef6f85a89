"""Steps of programs for GPUs: blocks, threads, shared memory, tensor cores."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.program.steps.base import Phase, Step
from ansor.program.steps.loops import FuseConsumer, MultiLevelTile


@dataclass(frozen=True)
class BindTiles(Step):
    """Run the tiles of `stage` on a GPU: each of its three outermost levels of spatial loops is
    fused; they become blocks, virtual threads and the threads of a block.
    """

    phase = Phase.BIND

    stage: str


@dataclass(frozen=True)
class BindLoops(Step):
    """Fuse the outermost spatial loops of an untiled `stage` and deal them out to the threads of a
    GPU, `hole` of them to a block.
    """

    phase = Phase.BIND

    stage: str
    hole: str

    @property
    def distinguishing_holes(self) -> tuple[str, ...]:
        """See `Step`."""
        return (self.hole,)


@dataclass(frozen=True)
class BindRows(Step):
    """Let each block of a GPU compute a row of `stage`: its `rows` outermost loops, fused, number
    the blocks, the other spatial loops, fused, are dealt out to `hole` threads.
    """

    phase = Phase.BIND

    stage: str
    rows: int
    hole: str

    @property
    def distinguishing_holes(self) -> tuple[str, ...]:
        """See `Step`."""
        return (self.hole,)


@dataclass(frozen=True)
class Store(Step):
    """Keep what `stage` writes in a memory of the GPU: "local" (registers) or "shared"."""

    phase = Phase.STORE

    stage: str
    scope: str


@dataclass(frozen=True)
class CooperativeFetch(Step):
    """Compute `stage` into shared memory, at the outermost reduction level of the tiled `host`.

    Its loops are fused and dealt out to the threads of the block, up to `hole` elements to each at
    a time, as a vector: the greatest common divisor of that and the length of its rows. With a
    `pad` of 1, or 2, the rows are as far apart as `padded_row` says.
    """

    phase = Phase.PLACE

    stage: str
    host: str
    hole: str
    pad: str

    @property
    def distinguishing_holes(self) -> tuple[str, ...]:
        """See `Step`."""
        return (self.pad,)


@dataclass(frozen=True)
class ReduceInBlock(Step):
    """Compute the reduction `stage` once per row of `host`: all threads of the block share its
    reduction loops, fused, and add up what each of them has (cross-thread reduction).
    """

    phase = Phase.PLACE

    stage: str
    host: str


@dataclass(frozen=True)
class ComputePerThread(Step):
    """Compute `stage` inside the spatial loops of the untiled `host`, for the elements that one
    thread of it needs.
    """

    phase = Phase.PLACE

    stage: str
    host: str


@dataclass(frozen=True)
class TensorTile(MultiLevelTile):
    """Tile a product of matrices for tensor cores.

    The `structure` ends in "T", the tile of one instruction: 16 by 16 by 16 along `matrix`, the
    numbers of the axes of rows, columns and reduction.
    """

    matrix: tuple[int, ...]


@dataclass(frozen=True)
class BindWarps(Step):
    """Run the tiles of `stage` on tensor cores: its two outermost levels of spatial loops, fused,
    become blocks and the warps of a block.
    """

    phase = Phase.BIND

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
class LoadFragment(Step):
    """Compute `stage`, a copy of an operand, into the registers of a warp, at the inner reduction
    level of `host`; `operand` is "a" or "b".
    """

    phase = Phase.PLACE

    stage: str
    host: str
    operand: str


@dataclass(frozen=True)
class Tensorize(Step):
    """Let the innermost tiles of `stage`, of the `loads` of its operands and of the `store` of its
    result be the tensor unit's instructions; either operand may lie `transposed`, and the statement
    may name the right one first (`swapped`).
    """

    phase = Phase.ANNOTATE

    stage: str
    loads: tuple[str, str]
    store: str
    transposed: tuple[bool, bool]
    swapped: bool


@dataclass(frozen=True)
class Pipeline(Step):
    """Fetch operands of the tiled `stage` ahead: as many rounds of its outermost reduction loops as
    `hole` says, in one buffer more than that; with `asynchronous` copies where the GPU has them.

    Those loops are fused; with no more rounds than that there is nothing to do ahead.
    """

    phase = Phase.ANNOTATE

    stage: str
    hole: str
    asynchronous: bool

    @property
    def distinguishing_holes(self) -> tuple[str, ...]:
        """See `Step`."""
        return (self.hole,)


Bind = BindTiles | BindLoops | BindRows | BindWarps
# Attached where no decision says.
Placed = CooperativeFetch | ReduceInBlock | ComputePerThread | LoadFragment
