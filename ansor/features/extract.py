"""Features of every stage of a population (Ansor, appendix B; the column list is in `columns`).

Deviation: logarithms are linear between powers of two, because trees read only their order. Columns
of a stage's draft can follow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ansor.config import FEATURES
from ansor.features.columns import NUM_FEATURES
from ansor.features.loop_tables import (
    Bools,
    Floats,
    at_least,
    count,
    innermost,
    loop_table,
    masked_product,
    of_loop,
    rough_log2,
    row_of,
)
from ansor.features.profile import AccessProfile, StageProfile
from ansor.program.sketch import Population


def extract(
    population: Population,
    profiles: dict[str, StageProfile],
    further: Sequence[list[Floats]] = (),
) -> Floats:
    """Returns `[P, S, F] float32`, stages in the order of the DAG.

    Args:
        population: the programs.
        profiles: of every stage.
        further: columns of each stage behind the features, `[P]` each, equally many for all stages.
    """
    columns = NUM_FEATURES + (len(further[0]) if further else 0)
    out: Floats = loop_table(len(profiles) * columns, len(population))
    for number, profile in enumerate(profiles.values()):
        rows = out[number * columns : (number + 1) * columns]
        first = _operations(profile) + _stage(population, profile) + _accesses(profile)
        for column, row in enumerate(first):
            np.abs(row, out=rows[column])
        rows[: len(first)] = rough_log2(rows[: len(first)] + 1)
        last = [*_intensity(profile), *(further[number] if further else ())]
        for column, row in enumerate(last, columns - len(last)):
            rows[column] = row
    return np.ascontiguousarray(out.T).reshape(len(population), len(profiles), columns)


def _operations(profile: StageProfile) -> list[Floats]:
    counts = vars(profile.nest.stage.ops).values()
    return [profile.iterations * np.float32(count) for count in counts]


def _stage(population: Population, profile: StageProfile) -> list[Floats]:
    nest = profile.nest
    ones = np.ones(len(population), dtype=np.float32)
    active = list(profile.active)
    unrolled = masked_product(nest.unrolled[active], profile.extents)
    roles = population.sketch.roles
    hole = roles.unroll.get(roles.root(nest.stage.name))
    steps = population.values(hole)[:, 0].astype(np.float32) if hole else 0 * ones
    width = ones if profile.vector is None else profile.extents[profile.vector]
    reduce = np.asarray([nest.loops[loop].reduce for loop in active], dtype=np.bool_)
    stage_loops = np.asarray([loop >= nest.num_host for loop in active], dtype=np.bool_)
    inner = masked_product((reduce & stage_loops)[:, None], profile.extents)
    spatial = masked_product((~reduce & stage_loops)[:, None], profile.extents)
    write = profile.accesses[-1]
    return [
        profile.iterations,
        count(profile.extents > 1).astype(np.float32),
        nest.extents[: len(nest.loops) // 2].prod(axis=0, dtype=np.float32),
        width,
        unrolled,
        steps,
        profile.parallel,
        inner,
        spatial,
        ones * (nest.position > 0),
        ones * nest.position,
        ones * nest.stage.has_branch,
        ones * bool(nest.stage.reduce),
        write.bytes[0],
    ]


def _accesses(profile: StageProfile) -> list[Floats]:
    """Columns of the first accesses; slots without an access are zero."""
    writes = [access for access in profile.accesses if access.is_write][:1]
    reads = [access for access in profile.accesses if not access.is_write]
    slots = [*writes, *reads][: FEATURES.access_slots]
    return [row for access in slots for row in _access(profile, access)]


def _access(profile: StageProfile, access: AccessProfile) -> list[Floats]:
    ones = np.ones(profile.extents.shape[1], dtype=np.float32)
    item = np.float32(access.buffer.item_bytes)
    lines = access.lines(FEATURES.line_bytes)[0]
    distance, distance_bytes, count = _reuse(profile, access)
    touched = profile.iterations * item
    updates = access.is_write and bool(profile.nest.stage.reduce)
    total_lines = touched / np.minimum(access.run[0] * item, FEATURES.line_bytes)
    return [
        ones * (not access.is_write or updates),
        ones * access.is_write,
        touched,
        access.bytes[0],
        total_lines,
        lines,
        distance,
        distance_bytes,
        count,
        touched / count,
        total_lines / count,
        _innermost_stride(profile, access),
        _vector_stride(profile, access, ones),
    ]


def _vector_stride(profile: StageProfile, access: AccessProfile, ones: Floats) -> Floats:
    """Zero without a vector. The value does not depend on the other programs of a population."""
    stride = access.strides.get(profile.vector) if profile.vector is not None else None
    if stride is None or profile.vector is None:
        return 0 * ones
    found: Floats = stride * (profile.extents[profile.vector] > 1)
    return found


def _reuse(profile: StageProfile, access: AccessProfile) -> tuple[Floats, Floats, Floats]:
    """Iterations and bytes between two uses of an element, and the number of its uses.

    The innermost loop that does not move the access reuses its elements.
    """
    loop = innermost(~_moving(profile, access) & (profile.extents > 1))
    reused = loop >= 0
    distance = reused * profile.iterations / row_of(profile.outer, loop + 1)
    touched = reused * row_of(profile.bytes, loop + 1)
    return distance, touched, of_loop(profile.extents, loop)


def _innermost_stride(profile: StageProfile, access: AccessProfile) -> Floats:
    return row_of(access.moves, innermost(_moving(profile, access) & (profile.extents > 1)))


def _moving(profile: StageProfile, access: AccessProfile) -> Bools:
    """`[L, 1]`: the loops that move an access in some program."""
    moving = [loop in access.strides for loop in range(len(profile.extents))]
    return np.asarray(moving, dtype=np.bool_)[:, None]


def _intensity(profile: StageProfile) -> list[Floats]:
    """Operations per byte at ten sizes of the inner loops, from one iteration to all."""
    flops = np.float32(max(profile.nest.stage.ops.flops, 1))
    inner = profile.iterations / profile.outer
    intensity = rough_log2(1 + flops * inner / at_least(profile.bytes, 1))
    sizes = rough_log2(inner)
    rows = []
    for sample in range(FEATURES.intensity_samples):
        limit = sizes[0] * np.float32(sample / (FEATURES.intensity_samples - 1))
        depth = count(sizes > limit + np.float32(1e-3))
        rows.append(row_of(intensity, depth))
    return rows
