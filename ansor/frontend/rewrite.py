"""Rewriting the calls of a Relax module, one rule at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import numpy as np
import tvm
from tvm import relax, tirx

Lookup = Callable[[Any], Any]  # the value that a variable is bound to; other expressions unchanged
Rule = Callable[[Any, Lookup], Any]  # (call, lookup) -> what stands in its place
Key = TypeVar("Key", bound=Hashable)


def op_name(expr: Any) -> str:
    """Name of the Relax operator that the expression calls, or ""."""
    is_call = isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op)
    return str(expr.op.name) if is_call else ""


def static_shape(expr: Any) -> tuple[int, ...] | None:
    """Shape of a tensor expression; None if it is no tensor or not all extents are known."""
    ty = expr.ty
    if not isinstance(ty, relax.TensorType) or ty.shape is None:
        return None
    if not all(isinstance(extent, tirx.IntImm) for extent in ty.shape):
        return None
    return tuple(int(extent) for extent in ty.shape)


def constant(value: Any, dtype: str | None = None) -> Any:
    """A constant of an array's shape, in `dtype` or its own: untold, Relax halves 64-bit types."""
    array = np.asarray(value, dtype, order="C")
    return relax.const(array, str(array.dtype))


@relax.expr_functor.mutator
class _Rewriter(relax.PyExprMutator):  # type: ignore[misc]
    """Gives every operator call, operands first, to a rule."""

    def __init__(self, mod: tvm.IRModule, rule: Rule) -> None:
        super().__init__(mod)
        self.rule = rule

    def visit_call_(self, call: Any) -> Any:
        call = self.visit_expr_post_order(call)
        return self.rule(call, self._bound_value) if op_name(call) else call

    def _bound_value(self, expr: Any) -> Any:
        value = self.lookup_binding(expr) if isinstance(expr, relax.Var) else expr
        return expr if value is None else value


def rewrite_calls(mod: tvm.IRModule, rule: Rule) -> tvm.IRModule:
    """Applies the rule to every operator call; the result holds no unused binding."""
    rewriter = _Rewriter(mod, rule)
    for variable, function in mod.functions.items():
        if isinstance(function, relax.Function):
            rewriter.builder_.update_func(variable, rewriter.visit_expr(function))
    tidy = [relax.transform.CanonicalizeBindings(), relax.transform.DeadCodeElimination()]
    return tvm.transform.Sequential(tidy)(rewriter.builder_.get())


def with_functions(mod: tvm.IRModule, added: Mapping[str, tirx.PrimFunc]) -> tvm.IRModule:
    """A copy of the module with more PrimFuncs, to be called by name."""
    functions = {variable_for(name, function): function for name, function in added.items()}
    return tvm.IRModule({**mod.functions, **functions}, attrs=mod.attrs)


def replace_calls(
    mod: tvm.IRModule,
    chosen: Callable[[Any], Key | None],
    name: Callable[[Key], str],
    define: Callable[[Key], tirx.PrimFunc],
    operands: Callable[[Any, Key], list[Any]],
) -> tvm.IRModule:
    """`mod` with operator calls in whose place functions are called; itself if there are none.

    Args:
        chosen: what the function for a call depends on, None for a call that stays.
        name: how names of such functions begin.
        define: makes the function, one for all calls of which equal things are chosen.
        operands: what a call gives to it.
    """
    names: dict[Key, str] = {}

    def collect(call: Any, _: Lookup) -> Any:
        key = chosen(call)
        if key is not None:
            names.setdefault(key, f"{name(key)}{len(names) or ''}")
        return call

    rewrite_calls(mod, collect)
    if not names:
        return mod
    extended = with_functions(mod, {text: define(key) for key, text in names.items()})

    def replaced(call: Any, _: Lookup) -> Any:
        key = chosen(call)
        if key is None:
            return call
        function = extended.get_global_var(names[key])
        return relax.call_tir(function, relax.Tuple(operands(call, key)), call.ty)

    return rewrite_calls(extended, replaced)


def variable_for(name: str, function: tirx.PrimFunc) -> Any:
    """A new variable of the function's type, against which Relax checks calls."""
    variable = tvm.ir.GlobalVar(name)
    fresh = tirx.PrimFunc(function.params, function.body, function.ret_type, function.attrs)
    relax.expr._update_type(variable, fresh.ty)
    return variable
