"""The extent of an access's index at each loop depth, for a population at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ansor.dag.index import Index, Quotient, Remainder
from ansor.dag.stage import HoleExtent
from ansor.features.loop_tables import Floats, at_most
from ansor.program.nest import LoopNest, StageNest
from ansor.program.sketch import Population


@dataclass(frozen=True, eq=False)
class View:
    """A stage nest without its loops of one iteration.

    Attributes:
        nest: of all stages.
        stage: the nest of this stage.
        number: of each remaining loop, its number among these.
        extents: `[L, P]` of the remaining loops.
        reached: cached results of `_reached`, by the id of an index of the DAG and the place.
        slopes: cached results of `_slopes`, by the id of an index and whether jumps count.
    """

    nest: LoopNest
    stage: StageNest
    number: dict[int, int]
    extents: Floats
    reached: dict[tuple[int, Place | None], Floats] = field(default_factory=dict)
    slopes: dict[tuple[int, bool], dict[int, Floats]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Place:
    """The place where a buffer is allocated: inside `depth` loops, `[P]`, of its home.

    Iterations of the loops outside reuse the same elements. Loops in `common` are an exception:
    these are threads of a GPU that share the buffer.
    """

    depth: npt.NDArray[np.int32]
    common: frozenset[int] = frozenset()


def views_of(nest: LoopNest) -> dict[str, View]:
    """The view of every stage, in the order of the DAG."""
    found = {}
    for name in nest.population.sketch.dag.order:
        stage = nest.stages[name]
        active = np.flatnonzero((stage.extents > 1).any(axis=1)).tolist()
        extents = stage.extents[active].astype(np.float32)
        found[name] = View(nest, stage, {loop: i for i, loop in enumerate(active)}, extents)
    return found


def span_of(view: View, index: Index | None, size: Floats | float, place: Place | None) -> Floats:
    """`[L + 1, P]`: extent of one index at each depth, in a dimension of `size` elements."""
    if index is None:
        whole = np.empty((len(view.extents) + 1, view.extents.shape[1]), dtype=np.float32)
        whole[:] = size
        return whole
    key = id(index), place
    if key not in view.reached:
        view.reached[key] = _reached(view, index, place)
    reached = view.reached[key]
    if (reached[0] <= size).all():  # the whole run reaches furthest
        return reached
    return at_most(reached, size) if isinstance(size, float) else np.minimum(reached, size)


def add_strides(
    view: View, index: Index | None, stride: Floats | float, strides: dict[int, Floats]
) -> None:
    """Adds the part of one index, whose step is `stride`, to the `strides` of loops, `[P]` each."""
    if index is None:
        return
    for loop, slope in _known_slopes(view, index, jumps=not index.is_affine).items():
        moved = slope * stride
        strides[loop] = strides[loop] + moved if loop in strides else moved


def _reached(view: View, index: Index, place: Place | None) -> Floats:
    """`[L + 1, P]`: extent of an index at each depth, in an unlimited buffer."""
    blocks = [
        (atom, factor)
        for atom, factor in index.terms
        if isinstance(atom, Quotient) and atom.of_axis is not None
    ]
    if blocks:
        slopes = _slopes(view, Index(tuple(term for term in index.terms if term not in blocks)))
    else:
        slopes = _known_slopes(view, index)
    spans = _widths(view, slopes, place)
    spans += 1
    for atom, factor in blocks:
        # Tiles begin at multiples of their length.
        inner = _widths(view, _slopes(view, atom.index), place)
        spans += abs(factor) * (inner // np.float32(atom.divisor))
    return spans


def _widths(view: View, slopes: dict[int, Floats], place: Place | None) -> Floats:
    """`[L + 1, P]`: difference of the largest and least value of an index at each depth."""
    loops, programs = view.extents.shape
    widths: Floats = np.empty((loops + 1, programs), dtype=np.float32)
    width, end = np.zeros(programs, dtype=np.float32), loops + 1
    for loop, reach in sorted(_reach(view, slopes, place).items(), reverse=True):
        widths[loop + 1 : end] = width
        width, end = np.add(width, reach, dtype=np.float32), loop + 1
    widths[:end] = width
    return widths


def _reach(view: View, slopes: dict[int, Floats], place: Place | None) -> dict[int, Floats]:
    """By how much each loop widens an index; loops outside a buffer's allocation do not."""
    reach = {loop: np.abs(slope) * (view.extents[loop] - 1) for loop, slope in slopes.items()}
    if place is not None:
        last = int(place.depth.max())
        for loop, number in view.number.items():
            if number in reach and loop < last and loop not in place.common:
                reach[number] = np.where(loop < place.depth, 0, reach[number])
    return reach


def _known_slopes(view: View, index: Index, jumps: bool = False) -> dict[int, Floats]:
    """`_slopes` of an index of the DAG, computed once."""
    key = id(index), jumps
    if key not in view.slopes:
        view.slopes[key] = _slopes(view, index, jumps)
    return view.slopes[key]


def _slopes(view: View, index: Index, jumps: bool = False) -> dict[int, Floats]:
    """Mean change of an index per active loop; exact where it is affine.

    With `jumps`, a loop that moves a quotient only sometimes counts with the whole jump.
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
            scaled = np.multiply(value, np.float32(factor), dtype=np.float32)
            slopes[loop] = slopes[loop] + scaled if loop in slopes else scaled
    return slopes


def _atom_slope(atom: Quotient | Remainder, slope: Floats, extent: Floats, jumps: bool) -> Floats:
    """Change of a quotient or remainder per step of a loop that moves its index by `slope`.

    Loops whose whole range stays inside one multiple of the divisor, as with aligned tiles, do not
    change the quotient. Loops that step by multiples of the divisor do not change the remainder.
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


def size_of(population: Population, extent: int | HoleExtent) -> Floats | float:
    if isinstance(extent, HoleExtent):
        return population.values(extent.hole)[:, extent.column].astype(np.float32)
    return float(extent)
