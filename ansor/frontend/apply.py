"""Puts scheduled functions into a network and compiles it as it then stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import relax, tirx
from tvm.relax import transform
from tvm.target import Target

from ansor.errors import ArgumentError

Signature = tuple[tuple[tuple[int, ...], str], ...]


def signature(func: tirx.PrimFunc) -> Signature:
    """Shape and dtype of every buffer parameter."""
    return tuple(
        (tuple(int(extent) for extent in buffer.shape), str(buffer.dtype)) for buffer in func.params
    )


def apply_programs(mod: tvm.IRModule, programs: Mapping[str, tirx.PrimFunc]) -> tvm.IRModule:
    """A copy of the module in which the named functions are replaced by their scheduled forms.

    Raises:
        ArgumentError: a name that the module does not hold, or other parameters than before.
    """
    functions = dict(mod.functions)
    for variable in mod.get_global_vars():
        if variable.name_hint in programs:
            program = programs[variable.name_hint]
            functions[variable] = _replacement(variable.name_hint, functions[variable], program)
    _check_names(programs, {variable.name_hint for variable in functions})
    return tvm.IRModule(functions, attrs=mod.attrs)


def _check_names(programs: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(programs) - known)
    if unknown:
        raise ArgumentError("programs", ", ".join(unknown), "no such function in the module")


def _replacement(name: str, before: tirx.PrimFunc, program: tirx.PrimFunc) -> tirx.PrimFunc:
    if signature(program) != signature(before):
        remedy = f"its parameters must stay {signature(before)}"
        raise ArgumentError(f"programs[{name!r}]", signature(program), remedy)
    return program.without_attr("global_symbol")  # private again, as the call sites expect


def compile_module(mod: tvm.IRModule, target: Target) -> relax.VMExecutable:
    """Compiles an optimised module in memory; its PrimFuncs are taken as they are.

    TVM's default pipeline would legalise and rewrite again; this one plans memory and lowers calls.
    """
    passes = [
        transform.ToNonDataflow(),
        transform.RemovePurityChecking(),
        transform.CallTIRRewrite(),
        transform.StaticPlanBlockMemory(),
        transform.LowerAllocTensor(),
        transform.KillAfterLastUse(),
        transform.LowerRuntimeBuiltin(),
        transform.ComputePrimValue(),
        transform.VMShapeLower(),
        transform.AttachGlobalSymbol(),
    ]
    return relax.build(mod, target, relax_pipeline=tvm.transform.Sequential(passes))
