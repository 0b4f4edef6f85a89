"""Reads TensorIR expressions: index normal forms, operation counts, canonical text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tvm import ir, tirx

from ansor.dag import index as ix
from ansor.dag.index import Index
from ansor.dag.stage import Access, OpCounts

_BINARY = {
    tirx.Add: "add",
    tirx.Sub: "add",
    tirx.Mul: "mul",
    tirx.Div: "div",
    tirx.FloorDiv: "div",
    tirx.FloorMod: "div",
    tirx.Mod: "div",
    tirx.Max: "cmp",
    tirx.Min: "cmp",
    tirx.EQ: "cmp",
    tirx.NE: "cmp",
    tirx.LT: "cmp",
    tirx.LE: "cmp",
    tirx.GT: "cmp",
    tirx.GE: "cmp",
    tirx.And: "cmp",
    tirx.Or: "cmp",
    tirx.LShift: "add",
    tirx.RShift: "add",
    tirx.BitwiseAnd: "add",
    tirx.BitwiseOr: "add",
    tirx.BitwiseXor: "add",
}


class Reader:
    """Walks the value of a block's stores and gathers what the DAG needs.

    Args:
        block: the block's name, for messages.
        axes: the block's iteration variables, in order.
        extents: of the axes.
        names: unique buffer names by buffer.
    """

    def __init__(
        self, block: str, axes: Sequence[Any], extents: Sequence[int], names: dict[Any, str]
    ) -> None:
        self.block = block
        self.axes = list(axes)
        self.extents = list(extents)
        self.names = names
        self.reads: list[Access] = []
        self.ops = OpCounts()
        self.has_branch = False
        self._bound: dict[Any, Any] = {}

    def bind(self, var: Any, value: Any) -> None:
        """Registers a variable of the body; the operations of its value count once."""
        self._bound[var] = value
        self.visit(value)

    def access(self, buffer: Any, indices: Iterable[Any]) -> Access:
        """Returns the access with its indices in normal form."""
        found = [self.index(expr) for expr in indices]
        simple = tuple(i if i is None else ix.simplify(i, self.extents) for i in found)
        return Access(self.names[buffer], simple)

    def index(self, expr: Any) -> Index | None:
        """Normal form of an index expression, None if it is not understood."""
        if isinstance(expr, tirx.IntImm):
            return Index((), int(expr.value))
        if isinstance(expr, tirx.Var):
            return self.index(self._bound[expr]) if expr in self._bound else self._axis(expr)
        if isinstance(expr, tirx.Cast):
            return self.index(expr.value)
        if not isinstance(expr, tirx.Add | tirx.Sub | tirx.Mul | tirx.FloorDiv | tirx.FloorMod):
            return None
        left, right = self.index(expr.a), self.index(expr.b)
        return None if left is None or right is None else _combine(expr, left, right)

    def _axis(self, var: Any) -> Index | None:
        for position, axis in enumerate(self.axes):
            if axis.same_as(var):
                return ix.axis_index(position)
        return None

    def visit(self, expr: Any) -> None:
        """Counts operations and collects reads of a value (not of index arithmetic)."""
        if isinstance(expr, ir.TensorLoad):
            self.reads.append(self.access(expr.source, expr.indices))
            return
        kind = _BINARY.get(type(expr))
        if kind is not None:
            self._count(kind, expr.a)
            self.visit(expr.a)
            self.visit(expr.b)
        elif isinstance(expr, ir.Call):
            self._visit_call(expr)
        elif isinstance(expr, tirx.Select):
            self.ops += OpCounts(select=1)
            for part in (expr.condition, expr.true_value, expr.false_value):
                self.visit(part)
        elif isinstance(expr, tirx.Cast):
            self.visit(expr.value)
        elif isinstance(expr, tirx.Not):
            self.visit(expr.a)

    def _visit_call(self, call: Any) -> None:
        name = str(call.op.name) if hasattr(call.op, "name") else str(call.op)
        if name.endswith("if_then_else"):
            self.has_branch = True
            self.ops += OpCounts(select=1)
            for value in call.args[1:]:
                self.visit(value)
            return
        self._count("special", call)
        for value in call.args:
            self.visit(value)

    def _count(self, kind: str, operand: Any) -> None:
        family = "float" if "float" in str(_dtype(operand)) else "int"
        family = "float" if kind == "special" else family
        self.ops += OpCounts(**{f"{family}_{kind}": 1})

    def store_text(self, store: Any) -> str:
        """Canonical text of a store: axes by position, buffers by first use."""
        target = f"{self._buffer(store.buffer)}[{self._texts(store.indices)}]"
        return f"{target} = {self._text(store.value)}"

    def init_text(self, stores: Iterable[Any]) -> str:
        """Canonical text of a reduction's initial values."""
        return "".join(f"init {self._text(store.value)}; " for store in stores)

    def _buffer(self, buffer: Any) -> str:
        return f"b{list(self.names).index(buffer)}"

    def _texts(self, exprs: Iterable[Any]) -> str:
        return ",".join(self._text(expr) for expr in exprs)

    def _text(self, expr: Any) -> str:
        if isinstance(expr, ir.TensorLoad):
            return f"{self._buffer(expr.source)}[{self._texts(expr.indices)}]"
        if isinstance(expr, tirx.Var):
            if expr in self._bound:
                return self._text(self._bound[expr])
            axis = self._axis(expr)
            return str(axis) if axis is not None else str(expr)
        if isinstance(expr, tirx.IntImm | tirx.FloatImm):
            return f"{expr.value!r}:{_dtype(expr)}"
        name = type(expr).__name__
        if isinstance(expr, ir.Call):
            name = str(expr.op.name) if hasattr(expr.op, "name") else str(expr.op)
            return f"{name}({self._texts(expr.args)})"
        if isinstance(expr, tirx.Cast):
            return f"cast({self._text(expr.value)}, {_dtype(expr)})"
        if isinstance(expr, tirx.Select):
            parts = (expr.condition, expr.true_value, expr.false_value)
            return f"select({self._texts(parts)})"
        if type(expr) in _BINARY:
            return f"{name}({self._text(expr.a)},{self._text(expr.b)})"
        if isinstance(expr, tirx.Not):
            return f"{name}({self._text(expr.a)})"
        return f"{name}({expr})"


def _dtype(expr: Any) -> str:
    return str(expr.ty.dtype)


def _combine(expr: Any, left: Index, right: Index) -> Index | None:
    if isinstance(expr, tirx.Add):
        return ix.add(left, right)
    if isinstance(expr, tirx.Sub):
        return ix.add(left, ix.scale(right, -1))
    if isinstance(expr, tirx.Mul):
        if not right.terms:
            return ix.scale(left, right.const)
        return ix.scale(right, left.const) if not left.terms else None
    if right.terms or right.const <= 0:
        return None
    make = ix.quotient if isinstance(expr, tirx.FloorDiv) else ix.remainder
    return make(left, right.const)
