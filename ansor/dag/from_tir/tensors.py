"""A PrimFunc of TE tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import tvm
from tvm import te, tirx

from ansor.errors import ArgumentError


def prim_func(tensors: Sequence[te.Tensor]) -> tirx.PrimFunc:
    """The function that computes TE tensors, inputs first, then outputs.

    Raises:
        ArgumentError: the tensors do not make a function.
    """
    most = np.iinfo(np.int32).max  # elements that indices of TE's default dtype can count
    large = any(_elements(tensor) > most for tensor in tensors)
    try:
        return te.create_prim_func(list(tensors), "int64" if large else None)
    except (tvm.error.TVMError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[-1]
        remedy = f"give all inputs and outputs of one computation ({reason})"
        raise ArgumentError("model", [t.op.name for t in tensors], remedy) from error


def _elements(tensor: te.Tensor) -> int:
    extents = [extent for extent in tensor.shape if isinstance(extent, tirx.IntImm)]
    return math.prod(int(extent) for extent in extents)
