"""The address of an operand of an instruction on tiles."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tvm import sym, tirx
from tvm_ffi import structural_map

from ansor.dag.from_tir.read import is_literal
from ansor.errors import LoweringError
from ansor.lowering.statements import collect, substitute_variables

_ANALYZER = sym.Analyzer()


@dataclass(frozen=True, eq=False)
class Operand:
    """An element of a flat buffer."""

    buffer: Any
    index: Any

    def at(self, values: dict[Any, Any]) -> Any:
        """Its address for given values of variables."""
        index = _ANALYZER.simplify(substitute_variables(self.index, values))
        return tirx.address_of(tirx.BufferLoad(self.buffer, [index]))

    def is_moved_by(self, loop: tirx.For) -> bool:
        """Whether a loop moves the operand."""
        return any(v.same_as(loop.loop_var) for v in collect(self.index, tirx.Var))

    def stride(self, loop: tirx.For | None) -> int:
        """Elements by which an iteration of a loop moves the operand; 0 for no loop.

        Raises:
            LoweringError: iterations move it by different distances.
        """
        if loop is None:
            return 0
        last = int(loop.extent) - 1
        step, whole = (self._moved(loop, number) for number in (1, last))
        if step is None or whole != last * step:
            raise LoweringError(f"rows of {self.buffer} are not the same distance apart")
        return step

    def _moved(self, loop: tirx.For, number: int) -> int | None:
        """Elements by which `number` iterations move the operand; None if they vary."""
        there, here = (substitute_variables(self.index, _value(loop, n)) for n in (number, 0))
        distance = _ANALYZER.canonical_simplify(there - here)
        return int(distance) if isinstance(distance, tirx.IntImm) else None


def _value(loop: tirx.For, number: int) -> dict[Any, Any]:
    """The variable of a loop with a value."""
    return {loop.loop_var: tirx.const(number, str(loop.loop_var.ty.dtype))}


def within_panels(index: Any, loops: Iterable[tirx.For]) -> Any:
    """An index without quotients of loops whose iterations stay in one panel of a packed buffer.

    TVM's rules need a simpler dividend.
    """
    for loop in loops:
        one = _Iterations(loop)
        kinds = [(tirx.FloorDiv, one.quotient), (tirx.FloorMod, one.remainder)]
        index = structural_map(index, kinds)
    return index


class _Iterations:
    """The iterations of a loop, as parts of quotients and remainders.

    They share a quotient if the rest of its dividend is far enough below the next multiple of the
    divisor.
    """

    def __init__(self, loop: tirx.For) -> None:
        self._variable, self._start = loop.loop_var, _value(loop, 0)
        self._last = int(loop.extent) - 1

    def quotient(self, node: Any) -> Any:
        """The quotient of all iterations, if it is the same."""
        return substitute_variables(node, self._start) if self._share_a_quotient(node) else node

    def remainder(self, node: Any) -> Any:
        """The remainder of the first iteration, and the number of the iteration."""
        if not self._share_a_quotient(node):
            return node
        return substitute_variables(node, self._start) + self._variable

    def _share_a_quotient(self, node: Any) -> bool:
        first = _ANALYZER.simplify(substitute_variables(node.a, self._start))
        moved = _ANALYZER.canonical_simplify(node.a - first - self._variable)
        if not is_literal(moved, 0) or not isinstance(node.b, tirx.IntImm):
            return False
        known = _ANALYZER.modular_set(first)
        apart = math.gcd(int(known.coeff), int(node.b))
        return int(known.base) % apart + self._last < apart
