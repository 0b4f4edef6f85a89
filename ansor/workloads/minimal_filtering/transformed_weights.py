"""Weights of Winograd's minimal filtering, transformed: as arrays and as stages."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import te, tirx

from ansor.workloads.minimal_filtering.transforms import Matrix, Transform

Array = npt.NDArray[np.float32]


def transform_weight(weight: Array, transform: Transform, dtype: str = "float32") -> Array:
    """`[r, r, c, f]` to `[s, s, phases² c, f]`, in float64 inside; of volumes `[d, r, r, c, f]` to
    `[s, s, d, phases² c, f]`.

    Args:
        weight: of any dtype.
        dtype: of the result.
    """
    matrix, phases = np.asarray(transform.weight), transform.phases
    *depth, rows, columns, channels, filters = weight.shape
    missing = [(0, phases * transform.taps - size) for size in (rows, columns)]
    around = [*[(0, 0)] * len(depth), *missing, (0, 0), (0, 0)]
    whole = np.pad(weight, around).astype(np.float64)
    side = transform.taps, phases
    apart = whole.reshape(-1, *side, *side, channels, filters)
    exact = np.einsum("ai,bj,tipjqcf->abtpqcf", matrix, matrix, apart, optimize=True)
    out: Array = exact.reshape(transform.shape_of(weight.shape)).astype(np.dtype(dtype))
    return out


def transformed(weight: Any, transform: Transform) -> Any:
    """The transformed weights as stages of a TE tensor, one side after the other."""
    size, taps = transform.size, transform.taps
    weight = _kernels_apart(weight, transform) if transform.phases > 1 else weight
    *depth, _, _, channels, filters = (int(extent) for extent in weight.shape)
    matrix = constant_matrix_stage(transform.weight, "taps", str(weight.dtype))
    i, j = te.reduce_axis((0, taps), "i"), te.reduce_axis((0, taps), "j")
    inner, names = (*depth, channels, filters), [*["t"] * len(depth), "c", "f"]

    def along_rows(a: Any, b: Any, *point: Any) -> Any:
        *t, c, f = point
        return te.sum(matrix[a, i] * weight(*t, i, b, c, f), axis=i)

    long = te.compute((size, taps, *inner), along_rows, name="long", varargs_names=names)

    def along_columns(a: Any, b: Any, *point: Any) -> Any:
        return te.sum(matrix[b, j] * long(a, j, *point), axis=j)

    return te.compute((size, size, *inner), along_columns, name="kernels", varargs_names=names)


def _kernels_apart(weight: Any, transform: Transform) -> Any:
    """The taps of each phase, in the order of the data; zeros for missing taps."""
    *depth, rows, columns, channels, filters = (int(extent) for extent in weight.shape)
    taps, phases = transform.taps, transform.phases
    zero = tirx.const(0, str(weight.dtype))

    def tap(*point: Any) -> Any:
        *t, i, j, k, f = point
        row, column, c = channel_of_phases(k, phases, channels)
        row, column = i * phases + row, j * phases + column
        inside = tirx.all(row < rows, column < columns)
        return tirx.if_then_else(inside, weight(*t, row, column, c, f), zero)

    shape = (*depth, taps, taps, phases**2 * channels, filters)
    names = [*["t"] * len(depth), "i", "j", "k", "f"]
    return te.compute(shape, tap, name="taps_apart", varargs_names=names)


def channel_of_phases(k: Any, phases: int, channels: int) -> tuple[Any, Any, Any]:
    """Row, column and channel of a channel of phases."""
    floordiv, floormod = tirx.floordiv, tirx.floormod
    row, rest = floordiv(k, phases * channels), floormod(k, phases * channels)
    return row, floordiv(rest, channels), floormod(rest, channels)


def constant_matrix_stage(values: Matrix, name: str, dtype: str) -> Any:
    """A small matrix as a stage that holds nothing but constants."""
    shape = (len(values), len(values[0]))

    def entry(row: Any, column: Any) -> Any:
        zero = tirx.const(0.0, dtype)
        found = zero
        for r, line in enumerate(values):
            inner = zero
            for c, value in enumerate(line):
                if value:
                    inner = tirx.Select(column == c, tirx.const(float(value), dtype), inner)
            found = tirx.Select(row == r, inner, found)
        return found

    return te.compute(shape, entry, name=name)
