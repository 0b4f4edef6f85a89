"""Samples of a network's inputs, by which ranges of tensors are calibrated."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ansor.errors import ArgumentError
from ansor.frontend.deploy.convert import is_torch_tensor

Array = npt.NDArray[Any]
Sample = Mapping[str, Array]
ARGUMENT = "calibration"


@dataclass(frozen=True)
class Declared:
    """An input of a model.

    Attributes:
        shape: an extent is None where it is dynamic.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]

    @property
    def text(self) -> str:
        """For messages, `x float32[1, 3, ?]`."""
        extents = ", ".join("?" if extent is None else str(extent) for extent in self.shape)
        return f"{self.name} {self.dtype}[{extents}]"


def is_by_name(calibration: object) -> bool:
    """Whether samples are given as a file or a mapping of whole arrays."""
    return isinstance(calibration, str | os.PathLike | Mapping)


def read_samples(calibration: Any, inputs: Sequence[Declared]) -> list[Sample]:
    """The samples, checked against the model's inputs.

    Args:
        calibration: the path of a .npz file, or a mapping of names to arrays. Their first axis
            counts samples, or rows that are cut into batches of the model's size. Otherwise a
            sequence of samples: arrays in the order of the inputs, or by their names.
        inputs: of the model.

    Raises:
        ArgumentError: no such file, no samples, wrong names, shapes or dtypes, NaN or infinity.
    """
    if is_by_name(calibration):
        arrays = calibration if isinstance(calibration, Mapping) else _read_file(Path(calibration))
        _check_names(arrays, inputs)
        found = _cut({name: _array(value) for name, value in arrays.items()}, inputs)
    else:
        found = [_sample(place, value, inputs) for place, value in enumerate(calibration)]
    if not found:
        raise ArgumentError(ARGUMENT, 0, "give at least one sample")
    return [
        {one.name: _checked(sample[one.name], one, place) for one in inputs}
        for place, sample in enumerate(found)
    ]


def _read_file(path: Path) -> dict[str, Array]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError as error:
        raise ArgumentError(ARGUMENT, str(path), "no such file; give one that exists") from error
    except Exception as error:  # zip, NumPy and the system raise errors of unrelated kinds
        remedy = f"give a file that numpy.savez wrote ({str(error).splitlines()[0]})"
        raise ArgumentError(ARGUMENT, str(path), remedy) from error


def _check_names(given: Mapping[str, Any], inputs: Sequence[Declared]) -> None:
    if set(given) != {one.name for one in inputs}:
        remedy = f"name the arrays as the model's inputs: {_texts(inputs)}"
        raise ArgumentError(ARGUMENT, sorted(given), remedy)


def _texts(inputs: Sequence[Declared]) -> str:
    return ", ".join(one.text for one in inputs)


def _array(value: Any) -> Array:
    return np.asarray(value.detach().cpu() if is_torch_tensor(value) else value)


def _cut(arrays: Mapping[str, Array], inputs: Sequence[Declared]) -> list[dict[str, Array]]:
    """Samples of arrays that hold all of them."""
    parts = {one.name: list(_parts(arrays[one.name], one)) for one in inputs}
    counts = {name: len(found) for name, found in parts.items()}
    if len(set(counts.values())) > 1:
        raise ArgumentError(ARGUMENT, counts, "give as many samples of each input")
    return [dict(zip(parts, row, strict=True)) for row in zip(*parts.values(), strict=True)]


def _parts(array: Array, one: Declared) -> Iterator[Array]:
    if array.ndim == len(one.shape) + 1:
        yield from array
        return
    batch = one.shape[0] if one.shape else None
    rows = batch or 1
    if array.ndim != len(one.shape) or array.ndim == 0 or len(array) % rows:
        remedy = f"give samples of the shape of input {one.text}, in a row along the first axis"
        raise ArgumentError(f"{ARGUMENT}[{one.name!r}]", array.shape, remedy)
    yield from (array[start : start + rows] for start in range(0, len(array), rows))


def _sample(place: int, value: Any, inputs: Sequence[Declared]) -> dict[str, Array]:
    """A sample of a sequence: an array, arrays in order, or arrays by name."""
    if isinstance(value, Mapping):
        _check_names(value, inputs)
        return {name: _array(part) for name, part in value.items()}
    listed = list(value) if isinstance(value, list | tuple) else [value]
    if len(listed) != len(inputs):
        remedy = f"give an array for each input: {_texts(inputs)}"
        raise ArgumentError(f"{ARGUMENT}[{place}]", len(listed), remedy)
    return {one.name: _array(part) for one, part in zip(inputs, listed, strict=True)}


def _checked(array: Array, one: Declared, place: int) -> Array:
    """The array in the input's dtype."""
    argument = f"{ARGUMENT}[{one.name!r}], sample {place}"
    fits = len(array.shape) == len(one.shape) and all(
        wanted in (None, given) for given, wanted in zip(array.shape, one.shape, strict=True)
    )
    if not fits:
        raise ArgumentError(argument, array.shape, f"the shape must be that of {one.text}")
    if not np.can_cast(array.dtype, one.dtype, "same_kind"):
        raise ArgumentError(argument, str(array.dtype), f"the dtype must be {one.dtype}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ArgumentError(argument, "NaN or infinity", "calibrate with finite numbers")
    return np.ascontiguousarray(array, one.dtype)
