"""Variables of dataflow blocks as outputs of these blocks, where functions can return them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import tvm
from tvm import relax


def with_outputs(
    mod: tvm.IRModule, variables: Collection[Any]
) -> tuple[tvm.IRModule, dict[Any, Any]]:
    """`mod` with some of its variables as outputs of their blocks.

    Fusion goes past no output.

    Returns:
        the module.
        the output that each of the variables has become.
    """
    marker = _Marker(mod, set(variables))
    for variable, function in mod.functions.items():
        if isinstance(function, relax.Function):
            marker.builder_.update_func(variable, marker.visit_expr(function))
    return marker.builder_.get(), marker.outputs


@relax.expr_functor.mutator
class _Marker(relax.PyExprMutator):  # type: ignore[misc]
    def __init__(self, mod: tvm.IRModule, marked: set[Any]) -> None:
        super().__init__(mod)
        self.marked = marked
        self.outputs: dict[Any, Any] = {}

    def visit_var_binding_(self, binding: Any) -> None:
        if binding.var not in self.marked:
            super().visit_var_binding_(binding)
            return
        output = self.builder_.emit_output(self.visit_expr(binding.value))
        self.outputs[binding.var] = output
        self.set_var_remap(binding.var, output)
