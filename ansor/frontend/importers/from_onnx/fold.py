"""Nodes whose operands are known.

Exporters write a reshape as Shape, Gather, Unsqueeze and Concat, which is constant once the inputs
have static shapes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx.reference import ReferenceEvaluator

from ansor.config import IMPORTS

Array = npt.NDArray[Any]

_RANDOM = ("Random", "Bernoulli", "Multinomial", "Dropout")
# For these, ONNX's reference differs from runtimes, or its result is no tensor.
# A dequantised weight stays a quantised weight.
_NOT_FOLDED = frozenset(("Resize", "Upsample", "Constant", "If", "DequantizeLinear"))


def folded(node: Any, values: Sequence[Any], version: int) -> tuple[Array, ...]:
    """The results of a node whose operands are known.

    They are none if ONNX's reference cannot compute them, or not small.
    """
    if not _is_pure(node):
        return ()
    if node.op_type == "Div":
        results: Sequence[Any] = [_quotient(*values)]
    else:
        results = _evaluated(node, values, version)
    most = IMPORTS.max_known
    small = all(isinstance(value, np.ndarray) and value.size <= most for value in results)
    return tuple(results) if small else ()


def _quotient(a: Array, b: Array) -> Array:
    """Quotients of integers are truncated."""
    with np.errstate(all="ignore"):
        if a.dtype.kind not in "iu":
            return np.asarray(a / b, a.dtype)
        down, rest = np.floor_divide(a, b), np.mod(a, b)
        return np.asarray(down + ((rest != 0) & ((a < 0) != (b < 0))), a.dtype)


def _evaluated(node: Any, values: Sequence[Any], version: int) -> Sequence[Any]:
    named = {name: value for name, value in zip(node.input, values, strict=False) if name}
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            results = ReferenceEvaluator(node, opsets={"": version}).run(None, named)
    except Exception:  # the node stays, and its converter says what is wrong with it
        return ()
    return [np.asarray(r) if isinstance(r, np.generic) else r for r in results]


def _is_pure(node: Any) -> bool:
    """Whether the node computes the same at every run, from its inputs alone."""
    has_graph = any(a.type == onnx.AttributeProto.GRAPH for a in node.attribute)
    plain = not node.domain or node.domain == "ai.onnx"
    is_random = node.op_type.startswith(_RANDOM)
    return not has_graph and plain and not is_random and node.op_type not in _NOT_FOLDED
