"""The elements that each access of each stage touches at each loop depth, for a population at once.

Depth ``d`` is inside the outermost ``d`` loops. Depth 0 is the whole run of the stage, and depth L
one execution of its statement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ansor.config import FEATURES
from ansor.dag.stage import Access, Buffer
from ansor.features.allocation import Allocation, allocations
from ansor.features.loop_tables import Floats, at_least, at_most, masked_product, summed
from ansor.features.prefetch import Operand, PrefetchedPart, no_part, prefetched_part
from ansor.features.span import View, add_strides, size_of, span_of, views_of
from ansor.program.nest import LoopNest, StageNest
from ansor.targets.host.memory import PAGE_BYTES


@dataclass(frozen=True, eq=False)
class AccessProfile:
    """One read or write.

    Attributes:
        buffer: the accessed buffer.
        is_write: whether the access writes (a reduction also reads the element).
        strides: `strides[loop]` is `[P]`: elements in memory by which one step of the loop advances
            the access. Loops that do not move it are left out.
        footprint: `[L + 1, P]`: distinct elements touched at each depth.
        run: `[L + 1, P]`: length of the contiguous runs that the footprint consists of, estimated.
        spread: `[L + 1, P]`: greatest common divisor of the page and the distance of runs, in
            bytes. Shorter runs leave part of a cache's sets unused.
        width: of the panels of a packed constant, `[P]` elements; 0 for other buffers.
        private: `[P]`: whether each iteration of the parallel loop has its own buffer.
        inside: `[L, P]`: whether a loop runs inside the place of an intermediate buffer; None for
            inputs and outputs.
    """

    buffer: Buffer
    is_write: bool
    strides: dict[int, Floats]
    footprint: Floats
    run: Floats
    spread: Floats
    width: Floats | float = 0.0
    private: npt.NDArray[np.bool_] | bool = False
    inside: npt.NDArray[np.bool_] | None = None
    _lines: dict[int, Floats] = field(default_factory=dict, init=False)

    @cached_property
    def moves(self) -> Floats:
        """`[L + 1, P]`: `strides`, with zeros for loops without a stride and in the last row."""
        moves = np.zeros_like(self.footprint)
        for loop, stride in self.strides.items():
            moves[loop] = stride
        return moves

    @cached_property
    def moved(self) -> npt.NDArray[np.bool_]:
        """`[L, P]`: whether a step of a loop moves the access."""
        moved: npt.NDArray[np.bool_] = self.moves[:-1] != 0
        return moved

    @cached_property
    def bytes(self) -> Floats:
        """`[L + 1, P]` bytes touched."""
        total: Floats = self.footprint * np.float32(self.buffer.item_bytes)
        return total

    @cached_property
    def run_bytes(self) -> Floats:
        """`[L + 1, P]` bytes of a run."""
        total: Floats = self.run * np.float32(self.buffer.item_bytes)
        return total

    def room(self, line_bytes: int) -> Floats:
        """`[L + 1, P]` bytes of a cache that the footprint occupies, with the sets that it cannot
        use. Rows at a distance of a power of two share a few sets."""
        runs = at_least(self.run_bytes, line_bytes)
        used = np.where(self.footprint > self.run, at_most(runs / self.spread, 1), np.float32(1))
        taken: Floats = self.lines(line_bytes) * np.float32(line_bytes) / used
        return taken

    def lines(self, line_bytes: int) -> Floats:
        """`[L + 1, P]` touched cache lines: runs do not share lines."""
        if line_bytes not in self._lines:
            run = at_least(at_most(self.run_bytes, line_bytes), 1)  # there may be no element
            self._lines[line_bytes] = self.bytes / run
        return self._lines[line_bytes]


@dataclass(frozen=True, eq=False)
class StageProfile:
    """One stage: its loops, its accesses (reads first, then writes) and their sums.

    Loops that have one iteration in every program of the population are left out. `active` lists
    the remaining ones, and L is their number.
    """

    nest: StageNest
    active: tuple[int, ...]
    extents: Floats  # [L, P]
    accesses: tuple[AccessProfile, ...]

    @cached_property
    def outer(self) -> Floats:
        """`[L + 1, P]`: iterations of all loops outside each depth."""
        out = np.ones((len(self.extents) + 1, self.extents.shape[1]), dtype=np.float32)
        for loop, extent in enumerate(self.extents):
            np.multiply(out[loop], extent, out=out[loop + 1])
        return out

    @property
    def largest_constant(self) -> AccessProfile | None:
        """The read of the largest constant operand, None for none."""
        constants = (access for access in self.accesses if access.buffer.constant)
        return max(constants, key=lambda access: access.buffer.num_bytes, default=None)

    @cached_property
    def prefetched(self) -> PrefetchedPart:
        """The prefetched part of the largest constant, see `ansor.program.steps.Prefetch`."""
        sizes, constant = self.nest.prefetch, self.largest_constant
        if constant is None or not sizes.any():
            return no_part(self.extents.shape[1])
        active = list(self.active)
        parallel = self.nest.parallel[active]
        serial = ~parallel & ~self.nest.unrolled[active]
        if self.vector is not None:
            serial[self.vector] = False
        operand = Operand(constant.strides, constant.width)
        return prefetched_part(self.extents, operand, serial, parallel, sizes)

    @property
    def iterations(self) -> Floats:
        """`[P]`: executions of the statement."""
        last: Floats = self.outer[-1]
        return last

    @cached_property
    def bytes(self) -> Floats:
        """`[L + 1, P]`: bytes touched by all accesses."""
        return summed(access.bytes for access in self.accesses)

    @cached_property
    def parallel(self) -> Floats:
        """`[P]`: iterations of the fused parallel loop, 1 without one."""
        mask = self.nest.parallel[list(self.active)]
        return masked_product(mask, self.extents)

    @cached_property
    def vector(self) -> int | None:
        """Number, among the active loops, of the vectorised one."""
        vector = self.nest.vector
        return self.active.index(vector) if vector in self.active else None

    @cached_property
    def guarded(self) -> npt.NDArray[np.bool_]:
        """`[L, P]`: see `StageNest`."""
        return self.nest.guarded[list(self.active)]

    @cached_property
    def reductions(self) -> npt.NDArray[np.bool_]:
        """`[L, 1]`: the reduction loops of the stage itself, without its host's."""
        own = [k >= self.nest.num_host and self.nest.loops[k].reduce for k in self.active]
        return np.asarray(own, dtype=np.bool_)[:, None]

    @cached_property
    def others(self) -> npt.NDArray[np.bool_]:
        """`[L, 1]`: all loops but the vectorised one."""
        others = np.ones((len(self.active), 1), dtype=np.bool_)
        if self.vector is not None:
            others[self.vector] = False
        return others


def profile(nest: LoopNest) -> dict[str, StageProfile]:
    """Profiles every stage, in the order of the DAG."""
    views = views_of(nest)
    allocated = allocations(nest, views)
    return {name: _profile_stage(views[name], allocated) for name in views}


def _profile_stage(view: View, allocated: dict[str, Allocation]) -> StageProfile:
    stage = view.stage.stage
    accesses = [*((read, False) for read in stage.reads), *((w, True) for w in stage.writes)]
    made = [_profile_access(view, a, w, allocated.get(a.buffer)) for a, w in accesses]
    return StageProfile(view.stage, tuple(view.number), view.extents, tuple(made))


def _profile_access(
    view: View, access: Access, is_write: bool, allocation: Allocation | None
) -> AccessProfile:
    population = view.nest.population
    buffer = _in_groups(population.sketch.dag.buffers[access.buffer], access)
    shape: tuple[int, ...] = (len(view.extents) + 1, view.extents.shape[1])
    footprint, run = np.ones(shape, dtype=np.float32), np.ones(shape, dtype=np.float32)
    strides: dict[int, Floats] = {}
    spread = np.full(shape, FEATURES.line_bytes, dtype=np.float32)
    stride: Floats | float = 1.0
    dense: npt.NDArray[np.bool_] | bool = True
    if access.buffer in population.sketch.roles.packed:
        return _profile_packed(view, access, buffer)
    place = None if allocation is None else allocation.place
    sizes = (
        [size_of(population, n) for n in buffer.shape]
        if allocation is None
        else [size // access.reach(dim) for dim, size in enumerate(allocation.sizes)]
    )
    for index, size in zip(reversed(access.group_indices), reversed(sizes), strict=True):
        if isinstance(size, float) and size == 1:
            continue
        span = span_of(view, index, size, place)
        add_strides(view, index, stride, strides)
        footprint *= span
        if dense is not False:
            run *= span if dense is True else at_least(span * dense, 1)  # spans are 1 or more
            before, dense = dense, _still_dense(dense, span >= size)
            apart = _page_divisor(stride * size, buffer.item_bytes)
            spread = np.maximum(spread, apart * (before & ~np.asarray(dense)))
        stride = stride * size
    spread = spread.astype(np.float32)
    made = AccessProfile(buffer, is_write, strides, footprint, run, spread)
    if place is None:
        return made
    numbers = np.asarray(list(view.number), dtype=np.int32)[:, None]
    return replace(made, private=place.depth > 0, inside=numbers >= place.depth)


def _in_groups(buffer: Buffer, access: Access) -> Buffer:
    """The buffer whose elements are the groups that an access reads at once."""
    if access.group is None:
        return buffer
    shape, (dim, elements) = list(buffer.shape), (access.group.dim, access.group.elements)
    whole = shape[dim]
    assert isinstance(whole, int)
    shape[dim] = whole // elements
    return replace(buffer, shape=tuple(shape), dtype=f"uint{8 * buffer.item_bytes * elements}")


def _page_divisor(elements: Floats | float, item_bytes: int) -> Floats:
    """`[P]` or `[]`: greatest common divisor of a distance in memory and a page, in bytes; at least
    a line. It is the lowest bit that is set."""
    distance = np.asarray(elements).astype(np.int64) * item_bytes | PAGE_BYTES
    divisor: Floats = np.maximum(distance & -distance, FEATURES.line_bytes).astype(np.float32)
    return divisor


def _profile_packed(view: View, access: Access, buffer: Buffer) -> AccessProfile:
    """The read of a constant with the layout ``[n / width, ..., width]``."""
    population = view.nest.population
    sizes = [float(size) for size in buffer.shape if isinstance(size, int)]
    chosen = population.values(population.sketch.roles.packed[access.buffer])[:, 0]
    width: Floats = np.where(chosen == 0, sizes[-1], chosen).astype(np.float32)
    strides: dict[int, Floats] = {}
    last = span_of(view, access.group_indices[-1], sizes[-1], None)
    add_strides(view, access.group_indices[-1], 1.0, strides)
    rest = np.float32(math.prod(sizes[:-1]))
    strides = {k: np.where(np.abs(s) < width, s, s * rest) for k, s in strides.items()}
    footprint, run = last.copy(), np.minimum(last, width)
    dense = last >= width
    stride: Floats = width
    for index, size in zip(reversed(access.group_indices[:-1]), reversed(sizes[:-1]), strict=True):
        span = span_of(view, index, size, None)
        add_strides(view, index, stride, strides)
        footprint *= span
        run *= np.where(dense, span, 1)
        dense = dense & (span >= size)
        stride = stride * np.float32(size)
    spread = np.full(footprint.shape, FEATURES.line_bytes, dtype=np.float32)
    return AccessProfile(buffer, False, strides, footprint, run, spread, width)


def _still_dense(
    before: npt.NDArray[np.bool_] | bool, full: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_] | bool:
    """Whether runs continue in the next dimension; a single False if no program's runs do."""
    dense = full if before is True else full & before
    return dense if dense.any() else False
