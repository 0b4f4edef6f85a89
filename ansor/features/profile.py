"""What each access of each stage touches at each loop depth, for a population at once.

Depth ``d`` means: inside the outermost ``d`` loops. At depth 0 stands the whole run of the stage,
at depth L one execution of its statement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ansor.dag.index import Index, Quotient, Remainder
from ansor.dag.stage import Access, Buffer, HoleExtent
from ansor.program.nest import LoopNest, StageNest
from ansor.program.sketch import Population

Floats = npt.NDArray[np.float32]

# Addresses beyond a page are as good as random to a cache.
_PAGE_BYTES = 4096
_LEAST_SPREAD = 64.0  # bytes; a line


@dataclass(frozen=True, eq=False)
class AccessProfile:
    """One read or write.

    Attributes:
        buffer: what is accessed.
        is_write: whether it is written (a reduction also reads it).
        strides: `strides[loop]` is `[P]`: elements in memory that one step of the loop advances
            the access; loops that do not move it are left out.
        footprint: `[L + 1, P]`: distinct elements touched at each depth.
        run: `[L + 1, P]`: length of the contiguous runs that the footprint consists of, estimated.
        spread: `[L + 1, P]`: bytes modulo the page by which runs are apart, as a divisor of the
            page: runs shorter than that leave part of a cache's sets unused.
    """

    buffer: Buffer
    is_write: bool
    strides: dict[int, Floats]
    footprint: Floats
    run: Floats
    spread: Floats

    @cached_property
    def bytes(self) -> Floats:
        """`[L + 1, P]` bytes touched."""
        total: Floats = self.footprint * np.float32(self.buffer.item_bytes)
        return total

    def room(self, line_bytes: int) -> Floats:
        """`[L + 1, P]` bytes of a cache that the footprint takes up, the sets it cannot use
        included: rows a power of two apart fall on the same few sets."""
        runs = np.maximum(self.run * np.float32(self.buffer.item_bytes), np.float32(line_bytes))
        used = np.where(self.footprint > self.run, np.minimum(runs / self.spread, 1), 1)
        taken: Floats = self.lines(line_bytes) * np.float32(line_bytes) / used
        return taken

    def lines(self, line_bytes: int) -> Floats:
        """`[L + 1, P]` cache lines touched: each run fills lines of its own."""
        run_bytes = self.run * np.float32(self.buffer.item_bytes)
        lines: Floats = self.bytes / np.minimum(run_bytes, np.float32(line_bytes))
        return lines


@dataclass(frozen=True, eq=False)
class StageProfile:
    """One stage: its loops, its accesses (reads first, then writes) and what they add up to.

    Loops that have one iteration in every program of the population are left out; `active` lists
    the others, and L is their number.
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
    def iterations(self) -> Floats:
        """`[P]`: executions of the statement."""
        last: Floats = self.outer[-1]
        return last

    @cached_property
    def bytes(self) -> Floats:
        """`[L + 1, P]`: bytes touched by all accesses."""
        total: Floats = np.add.reduce([access.bytes for access in self.accesses])
        return total

    @cached_property
    def parallel(self) -> Floats:
        """`[P]`: iterations of the fused parallel loop, 1 without one."""
        mask = self.nest.parallel[list(self.active)]
        out: Floats = np.where(mask, self.extents, 1).prod(axis=0, dtype=np.float32)
        return out

    @cached_property
    def vector(self) -> int | None:
        """Number, among the active loops, of the vectorised one."""
        vector = self.nest.vector
        return self.active.index(vector) if vector in self.active else None


def profile(nest: LoopNest) -> dict[str, StageProfile]:
    """Profiles every stage, in the order of the DAG."""
    views = _views(nest)
    allocated = _allocations(nest, views)
    return {name: _profile_stage(views[name], allocated) for name in views}


def allocated_sizes(nest: LoopNest) -> dict[str, tuple[Floats, ...]]:
    """The `[P]` size of every intermediate buffer in each dimension: what its producer and its
    consumers touch inside the loops that it is allocated in."""
    return {name: found.sizes for name, found in _allocations(nest, _views(nest)).items()}


def _profile_stage(view: _View, allocated: dict[str, _Allocation]) -> StageProfile:
    stage = view.stage.stage
    accesses = [*((read, False) for read in stage.reads), *((w, True) for w in stage.writes)]
    made = [_profile_access(view, a, w, allocated.get(a.buffer)) for a, w in accesses]
    return StageProfile(view.stage, tuple(view.number), view.extents, tuple(made))


@dataclass(frozen=True, eq=False)
class _View:
    """A stage nest with its one-iteration loops left out: `number[loop]` among the others."""

    nest: LoopNest
    stage: StageNest
    number: dict[int, int]
    extents: Floats


def _views(nest: LoopNest) -> dict[str, _View]:
    """Of every stage, in the order of the DAG."""
    found = {}
    for name in nest.population.sketch.dag.order:
        stage = nest.stages[name]
        active = np.flatnonzero((stage.extents > 1).any(axis=1)).tolist()
        extents = stage.extents[active].astype(np.float32)
        found[name] = _View(nest, stage, {loop: i for i, loop in enumerate(active)}, extents)
    return found


@dataclass(frozen=True, eq=False)
class _Allocation:
    """An intermediate buffer: the `[P]` host loops outside it, and its `[P]` sizes."""

    depth: npt.NDArray[np.int32]
    sizes: tuple[Floats, ...]


def _allocations(nest: LoopNest, views: dict[str, _View]) -> dict[str, _Allocation]:
    depths = _allocation_depths(nest)
    found: dict[str, _Allocation] = {}
    for view in views.values():
        for access in (*view.stage.stage.writes, *view.stage.stage.reads):
            if access.buffer in depths:
                sizes = _touched(view, access, depths[access.buffer])
                if (known := found.get(access.buffer)) is not None:
                    sizes = tuple(map(np.maximum, sizes, known.sizes))
                found[access.buffer] = _Allocation(depths[access.buffer], sizes)
    return found


def _touched(view: _View, access: Access, depth: npt.NDArray[np.int32]) -> tuple[Floats, ...]:
    """`[P]` in each dimension: extent that an access reaches inside `depth` host loops."""
    population = view.nest.population
    shape = population.sketch.dag.buffers[access.buffer].shape
    whole = [_size(population, extent) for extent in shape]
    pairs = zip(access.indices, whole, strict=True)
    return tuple(_span(view, i, n, depth, {}, 1.0)[0] for i, n in pairs)


def _allocation_depths(nest: LoopNest) -> dict[str, npt.NDArray[np.int32]]:
    """For each intermediate buffer, `[P]`: how many host loops are outside its allocation.

    A buffer lives at the innermost loop that holds its producer and all its consumers; the same
    few elements serve every iteration of the loops further out.
    """
    dag, roles = nest.population.sketch.dag, nest.population.sketch.roles
    depths = {}
    for name in dag.order:
        if dag.is_output(name):
            continue
        home = roles.host.get(name, name)
        users = [name, *dag.consumers(name)]
        depths[dag.stages[name].output] = np.minimum.reduce(
            [_depth_in(nest, home, user) for user in users]
        )
    return depths


def _depth_in(nest: LoopNest, home: str, user: str) -> npt.NDArray[np.int32]:
    """`[P]`: how many loops of `home` enclose `user`."""
    stage = nest.stages[user]
    if user == home:
        return np.full(nest.size, len(stage.loops), dtype=np.int32)
    if nest.population.sketch.roles.host.get(user) == home:
        return stage.position
    return np.zeros(nest.size, dtype=np.int32)


def _profile_access(
    view: _View, access: Access, is_write: bool, allocation: _Allocation | None
) -> AccessProfile:
    population = view.nest.population
    buffer = population.sketch.dag.buffers[access.buffer]
    shape: tuple[int, ...] = (len(view.extents) + 1, view.extents.shape[1])
    footprint, run = np.ones(shape, dtype=np.float32), np.ones(shape, dtype=np.float32)
    strides: dict[int, Floats] = {}
    spread = np.full(shape, _LEAST_SPREAD, dtype=np.float32)
    stride: Floats | float = 1.0
    dense: npt.NDArray[np.bool_] | bool = True
    if access.buffer in population.sketch.roles.packed:
        return _profile_packed(view, access, buffer)
    depth = None if allocation is None else allocation.depth
    sizes = [_size(population, n) for n in buffer.shape] if allocation is None else allocation.sizes
    for index, size in zip(reversed(access.indices), reversed(sizes), strict=True):
        if isinstance(size, float) and size == 1:
            continue
        span = _span(view, index, size, depth, strides, stride)
        footprint *= span
        if dense is not False:
            run *= span if dense is True else np.where(dense, span, 1)
            before, dense = dense, _still_dense(dense, span >= size)
            apart = _page_divisor(stride * size, buffer.item_bytes)
            spread = np.where(before & ~np.asarray(dense), apart, spread)
        stride = stride * size
    return AccessProfile(buffer, is_write, strides, footprint, run, spread.astype(np.float32))


def _page_divisor(elements: Floats | float, item_bytes: int) -> Floats:
    """`[P]` or `[]`: greatest common divisor of a distance in memory and a page, in bytes."""
    distance = np.asarray(elements).astype(np.int64) * item_bytes
    divisor: Floats = np.maximum(np.gcd(distance, _PAGE_BYTES), _LEAST_SPREAD).astype(np.float32)
    return divisor


def _profile_packed(view: _View, access: Access, buffer: Buffer) -> AccessProfile:
    """A read of a constant that lies in memory as ``[n / width, ..., width]``."""
    population = view.nest.population
    sizes = [float(size) for size in buffer.shape if isinstance(size, int)]
    chosen = population.values(population.sketch.roles.packed[access.buffer])[:, 0]
    width: Floats = np.where(chosen == 0, sizes[-1], chosen).astype(np.float32)
    strides: dict[int, Floats] = {}
    last = _span(view, access.indices[-1], sizes[-1], None, strides, 1.0)
    rest = np.float32(math.prod(sizes[:-1]))
    strides = {k: np.where(np.abs(s) < width, s, s * rest) for k, s in strides.items()}
    footprint, run = last.copy(), np.minimum(last, width)
    dense = last >= width
    stride: Floats = width
    for index, size in zip(reversed(access.indices[:-1]), reversed(sizes[:-1]), strict=True):
        span = _span(view, index, size, None, strides, stride)
        footprint *= span
        run *= np.where(dense, span, 1)
        dense = dense & (span >= size)
        stride = stride * np.float32(size)
    spread = np.full(footprint.shape, _LEAST_SPREAD, dtype=np.float32)
    return AccessProfile(buffer, False, strides, footprint, run, spread)


def _still_dense(
    before: npt.NDArray[np.bool_] | bool, full: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_] | bool:
    """Whether runs go on into the next dimension; plainly False where they nowhere do."""
    dense = full if before is True else full & before
    return dense if dense.any() else False


def _span(
    view: _View,
    index: Index | None,
    size: Floats | float,
    depth: npt.NDArray[np.int32] | None,
    strides: dict[int, Floats],
    stride: Floats | float,
) -> Floats:
    """`[L + 1, P]`: extent of one index at each depth; adds its part to `strides` in place."""
    spans = np.empty((len(view.extents) + 1, view.extents.shape[1]), dtype=np.float32)
    if index is None:
        spans[:] = size
        return spans
    slopes = _slopes(view, index)
    reach = _reach(view, slopes, depth)
    spans[-1] = 1
    for loop in reversed(range(len(view.extents))):
        if loop in reach:
            np.add(spans[loop + 1], reach[loop], out=spans[loop])
        else:
            spans[loop] = spans[loop + 1]
    affine = index.is_affine
    for loop, slope in (slopes if affine else _slopes(view, index, jumps=True)).items():
        moved = slope * stride
        strides[loop] = strides[loop] + moved if loop in strides else moved
    return np.minimum(spans, size, out=spans)


def _reach(
    view: _View, slopes: dict[int, Floats], depth: npt.NDArray[np.int32] | None
) -> dict[int, Floats]:
    """By how much each loop widens an index; loops outside a buffer's allocation do not."""
    reach = {loop: np.abs(slope) * (view.extents[loop] - 1) for loop, slope in slopes.items()}
    if depth is not None:
        for loop, number in view.number.items():
            if number in reach and loop < int(depth.max()):
                reach[number] = np.where(loop < depth, 0, reach[number])
    return reach


def _slopes(view: _View, index: Index, jumps: bool = False) -> dict[int, Floats]:
    """Mean change of an index per active loop; exact where it is affine.

    With `jumps`, a loop that moves a quotient only now and then counts with the whole jump.
    """
    slopes: dict[int, Floats] = {}
    for atom, factor in index.terms:
        if isinstance(atom, int):
            steps = view.stage.steps.get(atom, {})
            parts = {view.number[k]: v for k, v in steps.items() if k in view.number}
        else:
            parts = {
                loop: _atom_slope(atom, value, view.extents[loop], jumps)  # type: ignore[misc]
                for loop, value in _slopes(view, atom.index, jumps).items()
            }
        for loop, value in parts.items():
            scaled = value * np.float32(factor)
            slopes[loop] = slopes[loop] + scaled if loop in slopes else scaled
    return slopes


def _atom_slope(atom: Quotient | Remainder, slope: Floats, extent: Floats, jumps: bool) -> Floats:
    """Change of a quotient or remainder per step of a loop that moves its index by `slope`.

    Loops whose whole range stays inside one multiple of the divisor, as aligned tiles do, leave
    the quotient alone; loops that step by multiples leave the remainder alone.
    """
    divisor = np.float32(atom.divisor)
    inside = np.mod(divisor, np.maximum(np.abs(slope * extent), 1)) == 0
    multiple = np.mod(slope, divisor) == 0
    if isinstance(atom, Remainder):
        most = (divisor - 1) / np.maximum(extent - 1, 1)  # it never goes beyond its divisor
        mean = slope if jumps else np.clip(slope, -most, most)
        return np.where(multiple, 0, mean).astype(np.float32)
    crossing = np.sign(slope) if jumps else slope / divisor
    return np.where(inside, 0, np.where(multiple, slope / divisor, crossing)).astype(np.float32)


def _size(population: Population, extent: int | HoleExtent) -> Floats | float:
    if isinstance(extent, HoleExtent):
        return population.values(extent.hole)[:, extent.column].astype(np.float32)
    return float(extent)
