"""The epilogue of an integer product: zero points, bias, scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ansor.config import GRAPH
from ansor.frontend.passes.integer.parameters import (
    Array,
    Parameter,
    is_known,
    is_zero,
    op,
    operand,
)
from ansor.frontend.rewrite import constant

# Half of the range, so that the terms of zero points fit, too.
_LIMIT = np.iinfo(np.int32).max // 2
_PRECISION = np.finfo(np.float32).eps


def with_epilogue(
    total: Any,
    terms: Sequence[Parameter],
    scale: Parameter | None,
    bias: Array | None,
    rank: int,
) -> Any:
    """`(total + terms) * scale + bias`, float32; without a scale the sums alone, int32.

    All known terms are one integer constant, also the bias if possible. All arguments broadcast
    against the sums, which have a rank.
    """
    steps = None if bias is None or scale is None else integer_bias(bias, scale)
    given = [term for term in terms if is_known(term)]
    fixed = sum([*given, *([] if steps is None else [steps])], np.zeros((), np.int32))
    computed = [term for term in terms if not is_known(term)]
    for term in [*computed, *([] if is_zero(fixed) else [constant(fixed, "int32")])]:
        total = op.add(total, term)
    if scale is None:
        return total
    real = op.multiply(op.astype(total, "float32"), operand(scale, rank))
    return real if bias is None or steps is not None else op.add(real, constant(bias))


def integer_bias(bias: Array, scale: Parameter) -> Array | None:
    """A float32 bias that is a whole number of steps of the sums, in steps; `int32`.

    None for another bias, an unknown scale, or values outside of int32.
    """
    if not is_known(scale):
        return None
    with np.errstate(all="ignore"):
        exact = bias.astype(np.float64) / scale
    steps = np.rint(exact)
    rounding = GRAPH.max_bias_error + np.abs(exact) * _PRECISION
    is_whole = (np.abs(exact - steps) <= rounding) & (np.abs(exact) < _LIMIT)  # not of NaN
    return steps.astype(np.int32) if np.all(is_whole) else None
