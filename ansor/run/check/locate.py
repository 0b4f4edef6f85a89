"""Finds the operator whose import is wrong, or cannot be compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm

from ansor.errors import AnsorError
from ansor.frontend.importers.source import NodeCase, SourceModel
from ansor.run.check.compare import OPERATOR_TOLERANCE, difference

Array = npt.NDArray[Any]
Execute = Callable[[tvm.IRModule, Sequence[Array]], list[Array]]


@dataclass(frozen=True)
class Fault:
    """An operator that is wrong alone.

    Attributes:
        operator: of the original framework.
        place: its layer or node.
        reason: the error, or the failure.
    """

    operator: str
    place: str
    reason: str

    def __str__(self) -> str:
        return f"operator {self.operator} in {self.place}: {self.reason}"


def first_fault(source: SourceModel, arrays: Sequence[Array], execute: Execute) -> Fault | None:
    """The first operator whose result differs from the original's for the original's operands.

    Args:
        arrays: inputs of the model.
        execute: compiles and runs an imported module.

    Returns:
        None if each operator alone is right.
    """

    def compared(case: NodeCase) -> str:
        with np.errstate(all="ignore"):
            found = execute(case.import_alone(), case.inputs)
            result = difference(found, case.expected, OPERATOR_TOLERANCE)
        return result.text if result.excess > 1 else ""

    return _first(source, arrays, compared)


def first_failure(
    source: SourceModel, arrays: Sequence[Array], compile_only: Callable[[tvm.IRModule], None]
) -> Fault | None:
    """The first operator that cannot be compiled alone; arguments as for `first_fault`."""

    def compiled(case: NodeCase) -> str:
        compile_only(case.import_alone())
        return ""

    return _first(source, arrays, compiled)


def _first(
    source: SourceModel, arrays: Sequence[Array], reason_of: Callable[[NodeCase], str]
) -> Fault | None:
    for case in source.nodes(arrays):
        try:
            reason = reason_of(case)
        except AnsorError as error:
            reason = _first_line(error)
        except Exception as error:  # TVM's passes raise errors of many unrelated kinds
            reason = f"TVM cannot compile it: {_first_line(error)}"
        if reason:
            return Fault(case.operator, case.place, reason)
    return None


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
