"""A network whose products have whole groups, with zeros at the ends of its weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx
from tvm.ir import GenericConst

from ansor.errors import UnsupportedError
from ansor.frontend.distinct_functions import ExtractedFunction, extract_functions
from ansor.frontend.passes.groups.function import in_whole_groups
from ansor.frontend.rewrite import Lookup, constant, op_name, rewrite_calls, variable_for
from ansor.program.dot_instructions import DotInstruction


def with_whole_groups(mod: tvm.IRModule, instructions: Collection[DotInstruction]) -> tvm.IRModule:
    """The network with reductions of whole groups for instructions that multiply groups.

    Names of functions and all results stay the same. Weights become longer.

    Args:
        mod: an optimised module.
        instructions: of the target.
    """
    functions = {each.name: _filled(mod, each, instructions) for each in extract_functions(mod)}
    changed = {name: func for name, func in functions.items() if not func.same_as(mod[name])}
    if not changed:
        return mod
    variables = {name: variable_for(name, func) for name, func in changed.items()}
    kept = {v: func for v, func in mod.functions.items() if v.name_hint not in changed}
    made = {variables[name]: func for name, func in changed.items()}
    return rewrite_calls(
        tvm.IRModule({**kept, **made}, attrs=mod.attrs), _calling(variables, changed)
    )


def _filled(
    mod: tvm.IRModule, function: ExtractedFunction, instructions: Collection[DotInstruction]
) -> tirx.PrimFunc:
    def group_size(dtypes: tuple[str, str, str]) -> int | None:
        return next((each.elements for each in instructions if each.takes(dtypes)), None)

    func = mod[function.name]
    try:
        return in_whole_groups(func, function.constants, group_size)
    except UnsupportedError:  # runs unscheduled
        return func


def _calling(variables: Mapping[str, Any], functions: Mapping[str, tirx.PrimFunc]) -> Any:
    """The rule that redirects calls to these functions, with weights of their shapes."""

    def called(call: Any, lookup: Lookup) -> Any:
        name = str(call.args[0].name_hint) if op_name(call) == "relax.call_tir" else ""
        if name not in functions:
            return call
        pairs = zip(call.args[1].fields, functions[name].params, strict=False)
        operands = [_in_shape(lookup(operand), operand, param) for operand, param in pairs]
        return relax.call_tir(variables[name], relax.Tuple(operands), call.ty)

    return called


def _in_shape(value: Any, operand: Any, param: Any) -> Any:
    """An operand, padded with zeros at its ends if it is a constant of a smaller shape."""
    if not isinstance(value, GenericConst):
        return operand
    array = value.value.numpy()
    missing = [int(size) - had for size, had in zip(param.shape, array.shape, strict=True)]
    return constant(np.pad(array, [(0, n) for n in missing])) if any(missing) else operand
