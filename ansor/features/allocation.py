"""Sizes of intermediate buffers after TVM's compaction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.dag.stage import Access
from ansor.features.loop_tables import Floats
from ansor.features.span import Place, View, size_of, span_of
from ansor.program.loop_structure import padded_row
from ansor.program.nest import LoopNest
from ansor.program.roles import Roles
from ansor.program.steps import CooperativeFetch


@dataclass(frozen=True, eq=False)
class Allocation:
    """An intermediate buffer: the host loops outside it, and its `[P]` sizes."""

    place: Place
    sizes: tuple[Floats, ...]


def allocations(nest: LoopNest, views: dict[str, View]) -> dict[str, Allocation]:
    places = _places(nest)
    found: dict[str, Allocation] = {}
    for view in views.values():
        for access in (*view.stage.stage.writes, *view.stage.stage.reads):
            if access.buffer in places:
                sizes = _touched(view, access, places[access.buffer])
                sizes = _apart(nest, access.buffer, sizes)
                if (known := found.get(access.buffer)) is not None:
                    sizes = tuple(map(np.maximum, sizes, known.sizes))
                found[access.buffer] = Allocation(places[access.buffer], sizes)
    return found


def _apart(nest: LoopNest, buffer: str, sizes: tuple[Floats, ...]) -> tuple[Floats, ...]:
    """Sizes of a buffer with the row distance of a cooperative fetch."""
    population = nest.population
    for name, step in population.sketch.roles.placed.items():
        fills = population.sketch.dag.stages[name].output == buffer
        if fills and isinstance(step, CooperativeFetch) and len(sizes) > 1:
            row = sizes[-1].astype(np.int32)
            item_bytes = population.sketch.dag.buffers[buffer].item_bytes
            row = padded_row(row, item_bytes, population.values(step.pad)[:, 0])
            return (*sizes[:-1], row.astype(np.float32))
    return sizes


def _touched(view: View, access: Access, place: Place) -> tuple[Floats, ...]:
    """`[P]` in each dimension: extent that an access covers inside the buffer's place."""
    population = view.nest.population
    shape = population.sketch.dag.buffers[access.buffer].shape
    whole = [size_of(population, extent) for extent in shape]
    dims = enumerate(zip(access.indices, whole, strict=True))
    return tuple(span_of(view, i, n, place)[0] + access.reach(d) - 1 for d, (i, n) in dims)


def _places(nest: LoopNest) -> dict[str, Place]:
    """The place of each intermediate buffer.

    A buffer is allocated at the innermost loop around its producer and all its consumers.
    """
    dag, roles = nest.population.sketch.dag, nest.population.sketch.roles
    places = {}
    for name in dag.order:
        if dag.is_output(name):
            continue
        home = _home(roles, name)
        users = [name, *dag.consumers(name)]
        depth = np.minimum.reduce([_depth_in(nest, home, user) for user in users])
        common = roles.threads_of(home) if roles.is_common(name) else ()
        places[dag.stages[name].output] = Place(depth, frozenset(common))
    return places


def _home(roles: Roles, name: str) -> str:
    """The stage whose loops contain the buffer that a stage writes."""
    return name if roles.fused_into(name) else roles.root(name)


def _depth_in(nest: LoopNest, home: str, user: str) -> npt.NDArray[np.int32]:
    """`[P]`: number of the loops of `home` around `user`."""
    stage = nest.stages[user]
    if user == home:
        return np.full(nest.size, len(stage.loops), dtype=np.int32)
    host = nest.population.sketch.roles.host
    while host.get(user, home) != home:
        user = host[user]
    if user in host:
        return nest.stages[user].position
    return np.zeros(nest.size, dtype=np.int32)
