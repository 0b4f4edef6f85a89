"""Quantised operands of operators that compute on numbers: half of their conversion is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import defs

from ansor.errors import OperatorError

_EIGHT_BITS = ("int8", "uint8")
_OWN_CHECK = "DequantizeLinear"  # its converter says more: the other half is missing


def check_integers(node: Any, operands: Sequence[Any], version: int) -> None:
    """Checks a node's 8-bit operands against the types that ONNX gives for it.

    Args:
        operands: arrays, expressions, or None where one is left out.
        version: of the operator set.

    Raises:
        OperatorError: the operator does not take such integers, or not beside another dtype.
    """
    dtypes = [None if value is None else _dtype(value) for value in operands]
    if node.op_type == _OWN_CHECK or not any(dtype in _EIGHT_BITS for dtype in dtypes):
        return
    try:
        schema = defs.get_schema(node.op_type, version, node.domain)
    except defs.SchemaError:  # of another domain, whose converters check their operands
        return
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    letters = [_letter(schema, place) for place in range(len(operands))]
    for name, dtype, letter in zip(node.input, dtypes, letters, strict=True):
        if dtype not in _EIGHT_BITS:
            continue
        others = {d for d, other in zip(dtypes, letters, strict=True) if other == letter and d}
        if len(others) > 1 or f"tensor({dtype})" not in allowed.get(letter, (letter,)):
            raise OperatorError(
                f"its input {name!r} is {dtype}, and it computes on other numbers",
                "a DequantizeLinear is missing before it: quantise the model again",
            )


def _letter(schema: Any, place: int) -> str:
    """The type variable of an operand; the last operand of a schema may stand for several."""
    return str(schema.inputs[min(place, len(schema.inputs) - 1)].type_str)


def _dtype(value: Any) -> str:
    return str(value.dtype if isinstance(value, np.ndarray) else value.ty.dtype)
