"""Steps of programs for GPUs: blocks, threads, shared memory, tensor cores."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.program.steps.base import Phase, Step
from ansor.program.steps.loops import FuseConsumer, MultiLevelTile


@dataclass(frozen=True)
class BindTiles(Step):
    """Run the tiles of `stage` on a GPU. Each of its three outermost levels of spatial loops is
    fused. The levels become blocks, virtual threads and the threads of a block.
    """

    phase = Phase.BIND

    stage: str


@dataclass(frozen=True)
class BindLoops(Step):
    """Fuse the outermost spatial loops of an untiled `stage` and distribute them over the threads
    of a GPU. `hole` is the number of threads of a block.
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
    """Let each block of a GPU compute a row of `stage`. The `rows` outermost loops, fused, become
    the blocks. The other spatial loops, fused, are distributed over `hole` threads.
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
    """Keep the output of `stage` in a memory of the GPU: "local" (registers) or "shared"."""

    phase = Phase.STORE

    stage: str
    scope: str


@dataclass(frozen=True)
class CooperativeFetch(Step):
    """Compute `stage` into shared memory, at the outermost reduction level of the tiled `host`.

    Its loops are fused and distributed over the threads of the block. A thread copies vectors of up
    to `hole` elements: the greatest common divisor of `hole` and the length of the rows. With a
    `pad` of 1 or 2, `padded_row` gives the distance of the rows.
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
    """Compute the reduction `stage` once per row of `host`. All threads of the block share its
    fused reduction loops, and add up their partial results (cross-thread reduction).
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
    """Run the tiles of `stage` on tensor cores. Its two outermost levels of spatial loops, fused,
    become blocks and the warps of a block.
    """

    phase = Phase.BIND

    stage: str


@dataclass(frozen=True)
class CooperativeStore(FuseConsumer):
    """Compute `consumer` once per block, with all threads. Its loops are fused and distributed. A
    thread stores vectors of up to `hole` elements.
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
    """Replace the innermost tiles of `stage` by the tensor unit's instructions.

    The same applies to the stages `loads`, which copy its operands, and `store`, which copies its
    result. Either operand may be `transposed` in memory. The statement may name the right operand
    first (`swapped`).
    """

    phase = Phase.ANNOTATE

    stage: str
    loads: tuple[str, str]
    store: str
    transposed: tuple[bool, bool]
    swapped: bool


@dataclass(frozen=True)
class Pipeline(Step):
    """Fetch operands of the tiled `stage` ahead of their use.

    `hole` is the number of rounds ahead, iterations of the fused outermost reduction loops. There
    is one more buffer than that. If the loops have no more iterations, nothing is fetched ahead.
    Copies are `asynchronous` if the GPU has such copies.
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
# Attached at a fixed place, without a decision.
Placed = CooperativeFetch | ReduceInBlock | ComputePerThread | LoadFragment
