"""The table of names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType

from ansor.errors import ArgumentError
from ansor.workloads.convolution import (
    conv1d,
    conv2d,
    depthwise_conv2d,
    transposed_conv2d,
)
from ansor.workloads.matmul import batch_matmul, dense, matmul
from ansor.workloads.normalise import softmax
from ansor.workloads.pooling import global_average_pool2d, max_pool2d
from ansor.workloads.reduction import norm, row_sum, total_sum
from ansor.workloads.separable import separable_conv2d
from ansor.workloads.winograd import winograd_conv2d
from ansor.workloads.workload import Workload

BUILDERS: Mapping[str, Callable[..., Workload]] = MappingProxyType(
    {
        "batch_matmul": batch_matmul,
        "conv1d": conv1d,
        "conv2d": conv2d,
        "dense": dense,
        "depthwise_conv2d": depthwise_conv2d,
        "global_average_pool2d": global_average_pool2d,
        "matmul": matmul,
        "max_pool2d": max_pool2d,
        "norm": norm,
        "row_sum": row_sum,
        "separable_conv2d": separable_conv2d,
        "softmax": softmax,
        "total_sum": total_sum,
        "transposed_conv2d": transposed_conv2d,
        "winograd_conv2d": winograd_conv2d,
    }
)


def names() -> tuple[str, ...]:
    """Names that `build` knows."""
    return tuple(BUILDERS)


def build(name: str, *, dtype: str = "float32", **shape: int) -> Workload:
    """Returns the workload `name`; sizes that `shape` leaves out have defaults.

    Args:
        name: one of `names()`.
        dtype: name of a precision, see `precision.py`: of products and convolutions.
        shape: sizes.

    Raises:
        ArgumentError: unknown name, dtype or size, or a size that is no integer or too small.
    """
    if name not in BUILDERS:
        raise ArgumentError("name", name, f"give one of the workloads {', '.join(BUILDERS)}")
    parameters = inspect.signature(BUILDERS[name]).parameters
    sizes = tuple(parameter for parameter in parameters if parameter != "dtype")
    for size, value in shape.items():
        _check_size(name, size, value, sizes)
    if dtype == "float32":
        return BUILDERS[name](**shape)
    if "dtype" not in parameters:
        raise ArgumentError("dtype", dtype, f"use float32, in which {name} is defined")
    return BUILDERS[name](dtype=dtype, **shape)


_MAY_BE_ZERO = ("padding", "relu")


def _check_size(name: str, size: str, value: object, known: tuple[str, ...]) -> None:
    if size not in known:
        raise ArgumentError("shape", size, f"give the sizes of {name}: {', '.join(known)}")
    least = 0 if size in _MAY_BE_ZERO else 1
    if not isinstance(value, int) or value < least:
        raise ArgumentError(size, value, f"must be an integer of at least {least}")
