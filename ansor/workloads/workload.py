"""`Workload`: a compute definition with its reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import te, tirx

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Workload:
    """A compute definition.

    Attributes:
        name: as in the registry.
        tensors: TE tensors, inputs first, one output last; all float32.
        reference: the output as NumPy computes it, from the inputs in the order of `tensors`.
    """

    name: str
    tensors: tuple[Any, ...]
    reference: Callable[..., Array]

    @cached_property
    def func(self) -> tirx.PrimFunc:
        """The definition as a TensorIR function, unscheduled."""
        return te.create_prim_func(list(self.tensors))

    def inputs(self, rng: np.random.Generator) -> list[Array]:
        """Standard normal inputs, in the order of `tensors`."""
        shapes = [tuple(int(size) for size in tensor.shape) for tensor in self.tensors[:-1]]
        return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
