"""Inputs on which an imported network is compared with the original."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ansor.config import CHECK
from ansor.frontend.importers.source import SourceModel
from ansor.frontend.signature import InputSpec

Array = npt.NDArray[Any]
EXTREME = "extreme values"  # name of an input set


@dataclass(frozen=True, eq=False)
class InputSet:
    """Inputs of one run.

    Attributes:
        name: description of the inputs.
        arrays: the inputs in a row.
        results: of the original.
    """

    name: str
    arrays: tuple[Array, ...]
    results: tuple[Array, ...]


def input_sets(source: SourceModel, seed: int = 0) -> Iterator[InputSet]:
    """The inputs of the comparison, each with the original's results: the user's examples, ordinary
    values, and values near the ends of the dtypes' ranges.

    The original decides which inputs are legal. If it raises an error, the inputs are left out, and
    integers are then drawn from the range of the example's.
    """
    rng = np.random.default_rng(seed)
    specs, examples = source.inputs, source.examples
    if examples is not None:
        yield _run("example inputs", source, examples)
    ordinary = [_ordinary(spec, rng) for spec in specs]
    legal = [_legal(*pair, rng) for pair in zip(ordinary, examples or ordinary, strict=True)]
    yield from _first_legal("ordinary values", source, (ordinary, legal, _zeros(ordinary)))
    extreme = [_extreme(spec, array, rng) for spec, array in zip(specs, ordinary, strict=True)]
    mixed = [e if _is_float(e) else n for e, n in zip(extreme, legal, strict=True)]
    yield from _first_legal(EXTREME, source, (extreme, mixed))


def _run(name: str, source: SourceModel, arrays: Sequence[Array]) -> InputSet:
    return InputSet(name, tuple(arrays), source.run(arrays))


def _first_legal(
    name: str, source: SourceModel, candidates: Sequence[Sequence[Array]]
) -> Iterator[InputSet]:
    for arrays in candidates:
        try:
            found = _run(name, source, arrays)
        except Exception:  # the model does not take such values, e.g. as indices
            continue
        yield found
        return


def _ordinary(spec: InputSpec, rng: np.random.Generator) -> Array:
    if spec.dtype == "bool":
        return rng.random(spec.shape) < 0.5
    dtype = numpy_dtype(spec.dtype)
    if not _is_float(np.zeros(0, dtype)):
        low = 0 if dtype.kind == "u" else CHECK.least_integer
        return rng.integers(low, CHECK.integer_limit, spec.shape).astype(dtype)
    values = rng.standard_normal(spec.shape)
    # Zeros, and values that are equal to a neighbour.
    zeros, ties = (rng.random(spec.shape) < CHECK.special_share for _ in range(2))
    values = np.where(zeros, 0.0, values)
    return np.where(ties, np.round(values), values).astype(dtype)


def _legal(ordinary: Array, example: Array, rng: np.random.Generator) -> Array:
    """Integers from the range of the example's; other values as they are."""
    if _is_float(ordinary) or ordinary.dtype == bool or not example.size:
        return ordinary
    if example is ordinary:
        return rng.integers(0, 2, ordinary.shape).astype(ordinary.dtype)
    low, high = int(example.min()), int(example.max())
    return rng.integers(low, high, ordinary.shape, dtype=np.int64, endpoint=True).astype(
        ordinary.dtype
    )


def _zeros(arrays: Sequence[Array]) -> list[Array]:
    return [array if _is_float(array) else np.zeros_like(array) for array in arrays]


def _extreme(spec: InputSpec, ordinary: Array, rng: np.random.Generator) -> Array:
    """Some elements are large, tiny, or at the ends of the range of integers."""
    if spec.dtype == "bool" or not ordinary.size:
        return ordinary
    if _is_float(ordinary):
        large = CHECK.large if ordinary.dtype.itemsize > 2 else CHECK.large_in_half
        special: Sequence[float] = (large, -large, 1 / large, -1 / large)
    else:
        limits = np.iinfo(ordinary.dtype)
        special = (limits.min, limits.max, limits.min + 1, limits.max - 1)
    drawn = rng.choice(np.array(special, ordinary.dtype), ordinary.shape)
    return np.where(rng.random(ordinary.shape) < CHECK.special_share, drawn, ordinary)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype of that name, bfloat16 included."""
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def _is_float(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype == ml_dtypes.bfloat16
