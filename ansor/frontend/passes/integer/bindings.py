"""What the variables of a module are bound to, and how often they are read."""

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
        uses: times that a variable is read, as an operand or a result.
    """

    values: Mapping[Any, Any]
    uses: Mapping[Any, int]

    @staticmethod
    def of(mod: tvm.IRModule) -> Bindings:
        """Those of a module."""
        values: dict[Any, Any] = {}
        uses: Counter[Any] = Counter()
        for function in mod.functions.values():
            if isinstance(function, relax.Function):
                _collect(function, values, uses)
        return Bindings(values, uses)

    def value(self, expr: Any) -> Any:
        """What an operand is bound to, if only one call reads it; else itself."""
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
