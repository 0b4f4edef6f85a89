"""The values of a module's variables, and the numbers of their uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax


@dataclass(frozen=True, eq=False)
class Bindings:
    """The variables of all functions.

    Attributes:
        values: in the order of the bindings.
        uses: number of reads of a variable, as an operand or a result.
    """

    values: Mapping[Any, Any]
    uses: Mapping[Any, int]

    @staticmethod
    def of(mod: tvm.IRModule) -> Bindings:
        """The bindings of a module."""
        values: dict[Any, Any] = {}
        uses: Counter[Any] = Counter()
        for function in mod.functions.values():
            if isinstance(function, relax.Function):
                _collect(function, values, uses)
        return Bindings(values, uses)

    def value(self, expr: Any) -> Any:
        """The value of an operand, if only one call reads it; else the operand itself."""
        return self.values.get(expr, expr) if self.uses.get(expr, 0) == 1 else expr


def _collect(function: Any, values: dict[Any, Any], uses: Counter[Any]) -> None:
    def count(expr: Any) -> None:
        if isinstance(expr, relax.Var):
            uses[expr] += 1

    for block in function.body.blocks:
        for binding in block.bindings:
            values[binding.var] = binding.value
            relax.analysis.post_order_visit(binding.value, count)
    relax.analysis.post_order_visit(function.body.body, count)
