"""`Workload`: a compute definition with its reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from tvm import ir, te, tirx

from ansor.config import CHECK

Array = npt.NDArray[Any]
Reference = Callable[..., Array]


@dataclass(frozen=True, eq=False)
class Workload:
    """A compute definition.

    Attributes:
        name: as in the registry.
        tensors: TE tensors, inputs first, one output last.
        reference: the output as NumPy computes it, from the inputs in the order of `tensors`.
    """

    name: str
    tensors: tuple[Any, ...]
    reference: Reference

    @cached_property
    def func(self) -> tirx.PrimFunc:
        """The definition as a TensorIR function, unscheduled."""
        return te.create_prim_func(list(self.tensors))

    @cached_property
    def flops(self) -> int:
        """Operations on numbers, a multiplication and the addition to a sum counted apart."""
        return sum(_flops(op) for op in _computed(self.tensors[-1].op, {}))

    def inputs(self, rng: np.random.Generator) -> list[Array]:
        """Random inputs, in the order of `tensors`.

        Floats are standard normal. Integers of 8 bits are uniform over their whole range, wider
        ones over a part of it.
        """
        return [_drawn(tensor, rng) for tensor in self.tensors[:-1]]


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype for TVM's name."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def _drawn(tensor: Any, rng: np.random.Generator) -> Array:
    """Random values for a tensor."""
    shape, dtype = tuple(int(size) for size in tensor.shape), numpy_dtype(str(tensor.dtype))
    if dtype.kind not in "iu":
        return rng.standard_normal(shape, dtype=np.float32).astype(dtype, copy=False)
    least = max(np.iinfo(dtype).min, -CHECK.largest_int32)
    largest = min(np.iinfo(dtype).max, CHECK.largest_int32)
    return rng.integers(least, largest, shape, dtype, endpoint=True)


def _computed(op: Any, seen: dict[Any, None]) -> tuple[Any, ...]:
    """The compute operations that `op` rests on, itself included, each once."""
    if op not in seen and isinstance(op, te.ComputeOp):
        seen[op] = None
        for tensor in op.input_tensors:
            _computed(tensor.op, seen)
    return tuple(seen)


def _flops(op: Any) -> int:
    axes = [*op.axis, *op.reduce_axis]
    reduces = bool(op.reduce_axis)
    body = op.body[0].source[0] if reduces else op.body[0]
    return math.prod(int(axis.dom.extent) for axis in axes) * (_operations(body) + reduces)


def _operations(expr: Any) -> int:
    """Arithmetic on numbers that are not indices, in one evaluation."""
    if isinstance(expr, _BINARY):
        return 1 + _operations(expr.a) + _operations(expr.b)
    if not isinstance(expr, ir.Call) or expr.op.name == "te.tensor_load":
        return 0
    if expr.op.name.endswith("if_then_else"):
        return sum(_operations(value) for value in expr.args[1:])
    return 1 + sum(_operations(value) for value in expr.args)


_BINARY = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Max, tirx.Min)
