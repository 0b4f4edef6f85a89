"""Random arguments for a function."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import tvm
from tvm import tirx

from ansor.config import MeasureConfig
from ansor.targets.host.memory import ALIGNMENT_BYTES, plain_block, scratch_block

_WORD = np.dtype("uint16")  # of the size of bfloat16
Rows = npt.NDArray[np.int64]
_NONE: Mapping[int, Rows] = MappingProxyType({})


def random_arrays(
    func: tirx.PrimFunc, config: MeasureConfig, low: float, rows: Mapping[int, Rows] = _NONE
) -> list[Any]:
    """One array per parameter, the same for the same seed.

    Outputs get values, too, so that a program that does not write an element is detected.

    Args:
        low: floats lie in [low, 1); integers in [0, config.max_int_input]; booleans are either.
        rows: of each array, the rows that count, by position; all by default. Other rows are zeros
            without memory.
    """
    rng = np.random.default_rng(config.seed)
    drawn = []
    for position, param in enumerate(func.params):
        shape, dtype, own = parameter_shape(param), parameter_dtype(param), rows.get(position)
        part = shape if own is None else (len(own), shape[-1])
        values = _random(rng, part, dtype, config, low)
        drawn.append(values if own is None else _with_rows(shape, own, values))
    return drawn


def in_rows(array: Any, rows: Rows | None) -> Any:
    """The elements that count; all elements without `rows`."""
    return array if rows is None else array.reshape(-1, array.shape[-1])[rows]


def parameter_shape(param: Any) -> tuple[int, ...]:
    """Static shape of a parameter, a tensor or a tensor's type."""
    return tuple(int(size) for size in param.shape)


def parameter_dtype(param: Any) -> np.dtype[Any]:
    """NumPy's dtype of a parameter."""
    return np.dtype(str(param.dtype))


def num_bytes(param: Any) -> int:
    """Bytes of a parameter."""
    return math.prod(parameter_shape(param)) * parameter_dtype(param).itemsize


def in_memory(memory: Any, param: Any) -> Any:
    """A TVM tensor of a parameter's shape and dtype on the host, in the given bytes."""
    part = memory[: num_bytes(param)]
    return _in_place(part.view(parameter_dtype(param)).reshape(parameter_shape(param)))


def _in_place(array: Any) -> Any:
    """A TVM tensor of an array on the host, in the same memory."""
    if array.dtype.kind != "V":
        return tvm.runtime.from_dlpack(array)
    words = tvm.runtime.from_dlpack(array.view(_WORD))  # NumPy's DLPack has no bfloat16
    return words._create_view(array.shape, str(array.dtype))


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype has floats; NumPy has no kind for bfloat16."""
    return dtype.kind == "f" or dtype == ml_dtypes.bfloat16


def small_floats(rng: np.random.Generator, limit: float, count: int) -> Any:
    """Bytes of `count` floats in float32 that are no larger than `limit`, within 1 %.

    Read as bfloat16, they are twice as many and within the same limit. Read as float16, all are
    finite.
    """
    values = (rng.random(2 * count, np.float32) * 2 - 1) * np.float32(limit)
    return values.astype(ml_dtypes.bfloat16).view(np.uint8)


def on_device(arrays: list[Any], device: Any) -> list[Any]:
    """Copies of the arrays as TVM tensors."""
    return [tvm.runtime.tensor(array, device) for array in arrays]


def arguments_for(
    params: Sequence[Any],
    arrays: Sequence[Any],
    device: Any,
    written: Collection[int],
    rows: Mapping[int, Rows] = _NONE,
) -> list[Any]:
    """Tensors to call a function with once, in the dtypes of its parameters.

    On the host, the function reads the arrays in place if their dtype is the parameter's.

    Args:
        params: of the function; only their dtypes count.
        arrays: one per parameter; none of them changes.
        device: where the function runs.
        written: positions of the parameters that it writes.
        rows: of each array, the rows that count, by position; all by default.
    """
    pairs = enumerate(zip(params, arrays, strict=True))
    return [
        _argument(array, parameter_dtype(param), device, i in written, rows.get(i))
        for i, (param, array) in pairs
    ]


def on_host(tensor: Any) -> Any:
    """A TVM tensor as a NumPy array; a read-only view if it is on the host."""
    if not _is_host(tensor.device):
        return tensor.numpy()
    if str(tensor.dtype) != "bfloat16":
        return np.from_dlpack(tensor)
    words = tensor._create_view(tensor.shape, str(_WORD))
    return np.from_dlpack(words).view(ml_dtypes.bfloat16)


def _is_host(device: Any) -> bool:
    return bool(device.dlpack_device_type() == tvm.cpu().dlpack_device_type())


def _argument(
    array: Any, dtype: np.dtype[Any], device: Any, written: bool, rows: Rows | None
) -> Any:
    if not _is_host(device):
        return tvm.runtime.tensor(array.astype(dtype, copy=False), device)
    if written or array.dtype != dtype or not _fits_tvm(array):
        array = _copied(array, dtype, rows)
    return _in_place(array)


def _copied(array: Any, dtype: np.dtype[Any], rows: Rows | None) -> Any:
    """A copy of the rows that count, in memory that kernels can use directly."""
    if rows is not None:
        return _with_rows(array.shape, rows, in_rows(array, rows).astype(dtype))
    copy = _new_array(array.shape, dtype)
    copy[...] = array
    return copy


def _with_rows(shape: tuple[int, ...], rows: Rows, values: Any) -> Any:
    """An array with the values in some of its rows. Its pages are small: the rows between them then
    take no memory."""
    memory = plain_block(math.prod(shape) * values.dtype.itemsize)
    array = memory.view(values.dtype).reshape(shape)
    array.reshape(-1, shape[-1])[rows] = values
    return array


def _fits_tvm(array: Any) -> bool:
    """Whether kernels can use the memory of an array directly."""
    flags = array.flags
    return bool(flags.c_contiguous and flags.writeable and array.ctypes.data % ALIGNMENT_BYTES == 0)


def _new_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Zeros in memory that kernels can use directly."""
    return scratch_block(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)


def _random(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    config: MeasureConfig,
    low: float,
) -> Any:
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, config.max_int_input, shape, endpoint=True).astype(dtype)
    drawn: Any = np.float64 if dtype == np.float64 else np.float32
    values = rng.random(min(math.prod(shape), config.max_drawn), dtype=drawn)
    values *= drawn(1.0 - low)
    values += drawn(low)
    return _repeated(values.astype(dtype, copy=False), shape)


def _repeated(values: Any, shape: tuple[int, ...]) -> Any:
    """An array that repeats the values."""
    array = _new_array(shape, values.dtype)
    flat = array.reshape(-1)
    for first in range(0, flat.size, max(1, values.size)):
        part = flat[first : first + values.size]
        part[:] = values[: part.size]
    return array


def has_nan(array: Any) -> bool:
    """Whether any element is not a number."""
    return bool((array != array).any())


def relative_difference(actual: list[Any], expected: list[Any]) -> float:
    """Largest absolute difference over the largest absolute value, of the worst pair of arrays."""
    pairs = zip(actual, expected, strict=True)
    return max((_difference(a, e) for a, e in pairs), default=0.0)


def _difference(actual: Any, expected: Any) -> float:
    if np.array_equal(actual, expected):
        return 0.0
    a, e = (np.asarray(x, dtype=np.float64) for x in (actual, expected))
    same = (a == e) | (np.isnan(a) & np.isnan(e))
    if same.all():
        return 0.0
    with np.errstate(invalid="ignore"):
        worst = float(np.max(np.where(same, 0.0, np.abs(a - e))))
    largest = float(np.max(np.abs(e[np.isfinite(e)]), initial=0.0))
    if not np.isfinite(worst) or largest == 0.0:
        return float("inf")
    return worst / largest
