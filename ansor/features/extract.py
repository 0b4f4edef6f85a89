"""Features of every stage of a population (Ansor, appendix B; the column list is in `columns`)."""

from __future__ import annotations

import numpy as np

from ansor.features.columns import (
    ACCESS_SLOTS,
    INTENSITY_SAMPLES,
    LOGARITHMS,
    NUM_FEATURES,
)
from ansor.features.profile import AccessProfile, StageProfile
from ansor.features.rows import row_of
from ansor.features.span import Floats
from ansor.program.sketch import Population

_LINE_BYTES = 64  # the unit of the line features; a feature, not a property of the machine


def extract(population: Population, profiles: dict[str, StageProfile]) -> Floats:
    """Returns `[P, S, F] float32`, stages in the order of the DAG."""
    out: Floats = np.zeros((len(profiles), NUM_FEATURES, len(population)), dtype=np.float32)
    for number, profile in enumerate(profiles.values()):
        rows = _operations(profile) + _stage(population, profile)
        rows += _accesses(profile) + _intensity(profile)
        for column, row in enumerate(rows):
            out[number, column] = row
    out[:, LOGARITHMS] = np.log2(1 + np.abs(out[:, LOGARITHMS]))
    return np.ascontiguousarray(out.transpose(2, 0, 1))


def _operations(profile: StageProfile) -> list[Floats]:
    counts = vars(profile.nest.stage.ops).values()
    return [profile.iterations * np.float32(count) for count in counts]


def _stage(population: Population, profile: StageProfile) -> list[Floats]:
    nest = profile.nest
    ones = np.ones(len(population), dtype=np.float32)
    active = list(profile.active)
    unrolled = np.where(nest.unrolled[active], profile.extents, 1).prod(axis=0)
    roles = population.sketch.roles
    hole = roles.unroll.get(roles.root(nest.stage.name))
    steps = population.values(hole)[:, 0].astype(np.float32) if hole else 0 * ones
    width = ones if profile.vector is None else profile.extents[profile.vector]
    reduce = np.asarray([nest.loops[loop].reduce for loop in active], dtype=np.bool_)
    own = np.asarray([loop >= nest.num_host for loop in active], dtype=np.bool_)
    inner = np.where((reduce & own)[:, None], profile.extents, 1).prod(axis=0)
    spatial = np.where((~reduce & own)[:, None], profile.extents, 1).prod(axis=0)
    write = profile.accesses[-1]
    return [
        profile.iterations,
        (profile.extents > 1).sum(axis=0, dtype=np.float32),
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
    writes = [access for access in profile.accesses if access.is_write][:1]
    reads = [access for access in profile.accesses if not access.is_write]
    slots = [*writes, *reads][:ACCESS_SLOTS]
    rows = [row for access in slots for row in _access(profile, access)]
    zeros = np.zeros(profile.extents.shape[1], dtype=np.float32)
    per_slot = len(rows) // len(slots)
    return rows + [zeros] * (per_slot * (ACCESS_SLOTS - len(slots)))


def _access(profile: StageProfile, access: AccessProfile) -> list[Floats]:
    ones = np.ones(profile.extents.shape[1], dtype=np.float32)
    item = np.float32(access.buffer.item_bytes)
    lines = access.lines(_LINE_BYTES)[0]
    distance, distance_bytes, count = _reuse(profile, access)
    touched = profile.iterations * item
    updates = access.is_write and bool(profile.nest.stage.reduce)
    vector = access.strides.get(profile.vector) if profile.vector is not None else None
    total_lines = touched / np.minimum(access.run[0] * item, _LINE_BYTES)
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
        vector if vector is not None else 0 * ones,
    ]


def _reuse(profile: StageProfile, access: AccessProfile) -> tuple[Floats, Floats, Floats]:
    """Iterations and bytes between two uses of an element, and how often it is used again.

    The innermost loop that does not move the access reuses its elements.
    """
    shape = profile.extents.shape[1]
    distance = np.zeros(shape, dtype=np.float32)
    touched = np.zeros(shape, dtype=np.float32)
    count = np.ones(shape, dtype=np.float32)
    for loop in reversed(range(len(profile.extents))):
        if loop in access.strides:
            continue
        extent = profile.extents[loop]
        first = (count == 1) & (extent > 1)
        inside = profile.iterations / profile.outer[loop + 1]
        distance = np.where(first, inside, distance)
        touched = np.where(first, profile.bytes[loop + 1], touched)
        count = np.where(first, extent, count)
    return distance, touched, count


def _innermost_stride(profile: StageProfile, access: AccessProfile) -> Floats:
    stride = np.zeros(profile.extents.shape[1], dtype=np.float32)
    for loop in sorted(access.strides):
        stride = np.where(profile.extents[loop] > 1, access.strides[loop], stride)
    return stride


def _intensity(profile: StageProfile) -> list[Floats]:
    """Operations per byte at ten sizes of the inner loops, from one iteration to all."""
    flops = np.float32(max(profile.nest.stage.ops.flops, 1))
    inner = profile.iterations / profile.outer
    intensity = np.log2(1 + flops * inner / np.maximum(profile.bytes, 1))
    sizes = np.log2(inner)
    rows = []
    for sample in range(INTENSITY_SAMPLES):
        limit = sizes[0] * np.float32(sample / (INTENSITY_SAMPLES - 1))
        depth = (sizes > limit + np.float32(1e-3)).sum(axis=0)
        rows.append(row_of(intensity, depth))
    return rows
