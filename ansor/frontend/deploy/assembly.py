"""Puts scheduled functions into a network and compiles it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import tvm
from tvm import relax, tirx
from tvm.relax import transform
from tvm.target import Target

from ansor.dag.from_tir.signature import Signature, signature
from ansor.errors import ArgumentError
from ansor.frontend.rewrite import Lookup, constant, op_name, rewrite_calls, variable_for
from ansor.program.layout import PackedLayout
from ansor.targets.registry import backend_of

_SCHEDULED = "tirx.is_scheduled"  # leaves a function alone where a default schedule is applied
Layouts = Mapping[int, PackedLayout]  # of the parameters that are packed


def apply_programs(
    mod: tvm.IRModule,
    programs: Mapping[str, tirx.PrimFunc],
    packings: Mapping[str, Layouts] | None = None,
) -> tvm.IRModule:
    """A copy of the module in which the named functions are replaced by their scheduled forms.

    Args:
        mod: an optimised module.
        programs: scheduled function by name.
        packings: layouts of packed weights, by function and parameter. The weights of all calls
            are packed here.

    Raises:
        ArgumentError: a name that is not in the module, or changed parameters.
    """
    packings = {name: layouts for name, layouts in (packings or {}).items() if layouts}
    _check_names(programs, {variable.name_hint for variable in mod.get_global_vars()})
    functions: dict[Any, Any] = {}
    renewed: dict[str, Any] = {}  # variables of functions whose parameters change
    for variable, function in mod.functions.items():
        name = variable.name_hint
        if name in programs:
            expected = _packed_signature(signature(function), packings.get(name, {}))
            function = _replacement(name, expected, programs[name])
        if name in packings:
            variable = renewed[name] = variable_for(name, function)
        functions[variable] = function
    return _packed_calls(tvm.IRModule(functions, attrs=mod.attrs), packings, renewed)


def _check_names(programs: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(programs) - known)
    if unknown:
        raise ArgumentError(
            "programs",
            ", ".join(unknown),
            "name a function of the module",
        )


def _replacement(name: str, expected: Signature, program: tirx.PrimFunc) -> tirx.PrimFunc:
    if signature(program) != expected:
        remedy = f"its parameters must be {expected}"
        raise ArgumentError(f"programs[{name!r}]", signature(program), remedy)
    private = program.without_attr("global_symbol")  # again, as the call sites expect
    return private.with_attr(_SCHEDULED, True)


def _packed_signature(plain: Signature, layouts: Layouts) -> Signature:
    out = list(plain)
    for position, layout in layouts.items():
        shape, dtype = plain[position]
        out[position] = (layout.shape(shape), dtype)
    return tuple(out)


def _packed_calls(
    mod: tvm.IRModule, packings: Mapping[str, Layouts], renewed: Mapping[str, Any]
) -> tvm.IRModule:
    """Redirects calls to functions with changed parameters, and packs their weights."""

    def packed(call: Any, lookup: Lookup) -> Any:
        if op_name(call) != "relax.call_tir" or call.args[0].name_hint not in packings:
            return call
        name, fields = call.args[0].name_hint, list(call.args[1].fields)
        for position, layout in packings[name].items():
            fields[position] = constant(layout.pack(lookup(fields[position]).value.numpy()))
        arguments = [renewed[name], relax.Tuple(fields), *call.args[2:]]
        return relax.Call(call.op, arguments, call.attrs, call.ty_args)

    return rewrite_calls(mod, packed) if packings else mod


def compile_module(
    mod: tvm.IRModule, target: Target, threads: int | None = None
) -> relax.VMExecutable:
    """Compiles an optimised module in memory, without a change of its PrimFuncs.

    `threads` is the number of threads that it will run on, by default those of this process.

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
    compiler = backend_of(target).compiler
    os.environ.update(compiler.variables())
    scheduled = compiler.default_schedule(mod, target)
    return relax.build(
        compiler.prepare(scheduled, target, threads),
        compiler.target(target),
        relax_pipeline=tvm.transform.Sequential(passes),
        tir_pipeline=compiler.pipeline,
    )
