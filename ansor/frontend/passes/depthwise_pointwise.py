"""Joins each depthwise convolution and the pointwise one that follows it to one function.

The tensor between them is as large as any activation and is read once. In one function, the first
convolution can be computed for each tile of the second. TVM does not fuse two convolutions.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax, tirx

from ansor.config import GRAPH
from ansor.dag.convolutions import is_depthwise, is_pointwise
from ansor.dag.from_tir.read import read_dag
from ansor.dag.graph import ComputeDAG
from ansor.errors import UnsupportedError
from ansor.frontend.distinct_functions import tir_calls
from ansor.frontend.passes.fusion_kind import FusionKind
from ansor.frontend.rewrite import op_name
from ansor.frontend.signature import entry_of


def fuse_pairs(mod: tvm.IRModule, least_bytes: int = GRAPH.min_pair_bytes) -> tvm.IRModule:
    """`mod`, fused and lowered, with pairs of functions joined if at least `least_bytes` are
    between them."""
    firsts, seconds = _ends(mod, least_bytes)
    if not seconds:
        return mod
    kinds = dict.fromkeys(firsts, FusionKind.BEFORE_ELEMENTWISE)
    kinds |= dict.fromkeys(seconds, FusionKind.ELEMENTWISE)
    marked = {
        variable: _marked(function, kinds.get(str(variable.name_hint), FusionKind.OPAQUE))
        for variable, function in mod.functions.items()
    }
    passes = [
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
        relax.transform.DeadCodeElimination(),
    ]
    return tvm.transform.Sequential(passes)(tvm.IRModule(marked, attrs=mod.attrs))


def _marked(function: Any, kind: FusionKind) -> Any:
    is_marked = isinstance(function, tirx.PrimFunc)
    return function.with_attr("op_pattern", int(kind)) if is_marked else function


def _ends(mod: tvm.IRModule, least_bytes: int) -> tuple[set[str], set[str]]:
    """Names of the functions that begin pairs, and of those that end one at each of their calls."""
    graphs = {name: _graph(mod[name]) for name in {_name(call) for call in tir_calls(mod)}}
    firsts = {
        name
        for name, dag in graphs.items()
        if dag is not None and is_depthwise(dag) and _result_bytes(dag) >= least_bytes
    }
    results = _results(mod)
    ends: set[str] = set()
    others: set[str] = set()
    for call in tir_calls(mod):
        found = ends if _follows(call, graphs[_name(call)], results, firsts) else others
        found.add(_name(call))
    return firsts, ends - others


def _follows(call: Any, dag: ComputeDAG | None, results: dict[Any, str], firsts: set[str]) -> bool:
    """Whether a call multiplies the result of one of `firsts`, point by point."""
    if dag is None:
        return False
    return any(
        results.get(argument) in firsts and is_pointwise(dag, buffer)
        for argument, buffer in zip(call.args[1].fields, dag.buffers, strict=False)
    )


def _results(mod: tvm.IRModule) -> dict[Any, str]:
    """Variables to the names of the functions that they are results of."""
    return {
        binding.var: _name(binding.value)
        for block in mod[entry_of(mod)].body.blocks
        for binding in block.bindings
        if op_name(binding.value) == "relax.call_tir"
    }


def _name(call: Any) -> str:
    return str(call.args[0].name_hint)


def _graph(function: Any) -> ComputeDAG | None:
    """The graph of a function; None if it cannot be scheduled."""
    try:
        return read_dag(function)
    except UnsupportedError:
        return None


def _result_bytes(dag: ComputeDAG) -> int:
    return sum(buffer.num_bytes for buffer in dag.buffers.values() if buffer.kind == "output")
