"""Random arguments for a function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tvm
from tvm import tirx

from ansor.config import MeasureConfig

_MOST_DRAWN = (1 << 22) - 3  # floats; larger arrays repeat them, out of step with any dimension


def random_arrays(func: tirx.PrimFunc, config: MeasureConfig, low: float) -> list[Any]:
    """One array per parameter, the same for the same seed.

    Outputs get values too: a program that forgets to write an element is then seen.

    Args:
        low: floats lie in [low, 1); integers in [0, config.max_int_input]; booleans are either.
    """
    rng = np.random.default_rng(config.seed)
    return [_random(rng, param, config, low) for param in func.params]


def shape_of(param: Any) -> tuple[int, ...]:
    """Static shape of a parameter, a tensor or a tensor's type."""
    return tuple(int(size) for size in param.shape)


def dtype_of(param: Any) -> np.dtype[Any]:
    """Its dtype, as NumPy has it."""
    return np.dtype(str(param.dtype))


def num_bytes(param: Any) -> int:
    """Its size."""
    return math.prod(shape_of(param)) * dtype_of(param).itemsize


def in_memory(memory: Any, param: Any) -> Any:
    """A TVM tensor of a parameter's shape and dtype on the host, in the given bytes.

    A copy, where NumPy has no word for the dtype that TVM understands (bfloat16).
    """
    array = memory[: num_bytes(param)].view(dtype_of(param)).reshape(shape_of(param))
    return (tvm.runtime.tensor if array.dtype.kind == "V" else tvm.runtime.from_dlpack)(array)


def on_device(arrays: list[Any], device: Any) -> list[Any]:
    """Copies of the arrays as TVM tensors."""
    return [tvm.runtime.tensor(array, device) for array in arrays]


def on_host(tensor: Any) -> Any:
    """A TVM tensor as a NumPy array; in place, and read-only, where it lies on the host."""
    here = tensor.device.dlpack_device_type() == tvm.cpu().dlpack_device_type()
    shared = here and str(tensor.dtype) != "bfloat16"  # not in NumPy's DLPack
    return np.from_dlpack(tensor) if shared else tensor.numpy()


def _random(rng: np.random.Generator, param: Any, config: MeasureConfig, low: float) -> Any:
    shape, dtype = shape_of(param), dtype_of(param)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, config.max_int_input, shape, endpoint=True).astype(dtype)
    drawn: Any = np.float64 if dtype == np.float64 else np.float32
    values = rng.random(min(math.prod(shape), _MOST_DRAWN), dtype=drawn)
    values *= drawn(1.0 - low)
    values += drawn(low)
    return np.resize(values.astype(dtype, copy=False), shape)


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
