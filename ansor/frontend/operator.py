"""A single compute definition as a network of one call: operators and networks go one way."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax, te, tirx

from ansor.dag.from_tir.read import read_dag
from ansor.dag.from_tir.tensors import prim_func
from ansor.errors import UnsupportedError
from ansor.frontend.passes.plain_definition import plain_definition


def is_operator(model: object) -> bool:
    """Whether the object is a PrimFunc or a list of TE tensors."""
    tensors = isinstance(model, list | tuple) and len(model) > 0
    return isinstance(model, tirx.PrimFunc) or (
        tensors and all(isinstance(tensor, te.Tensor) for tensor in model)  # type: ignore[attr-defined]
    )


def import_operator(model: Any) -> tvm.IRModule:
    """Wraps a PrimFunc, or TE tensors (inputs, then outputs), in a Relax function `main`.

    Raises:
        UnsupportedError: the definition cannot be scheduled, or its outputs are not last.
        ArgumentError: the tensors do not make a function.
    """
    func = plain_definition(model if isinstance(model, tirx.PrimFunc) else prim_func(model))
    inputs, outputs = _parameters(func)
    builder = relax.BlockBuilder()
    variables = [relax.Var(p.name, _type(p)) for p in inputs]
    with builder.function("main", variables):
        with builder.dataflow():
            callee = builder.add_func(func.without_attr("global_symbol"), "operator")
            types = [_type(p) for p in outputs]
            kind = types if len(types) > 1 else types[0]
            out = builder.emit(relax.call_tir(callee, relax.Tuple(variables), kind))
            result = builder.emit_output(out)
        builder.emit_func_output(result)
    return builder.get()


def _parameters(func: tirx.PrimFunc) -> tuple[list[Any], list[Any]]:
    """Inputs and outputs of the function, which have to stand in this order."""
    buffers = list(read_dag(func).buffers.values())
    kinds = [buffer.kind for buffer in buffers if buffer.kind != "intermediate"]
    count = kinds.count("input")
    if kinds != ["input"] * count + ["output"] * (len(kinds) - count):
        raise UnsupportedError(f"the parameters are {kinds}", "write the outputs after all inputs")
    params = list(func.params)
    return params[:count], params[count:]


def _type(buffer: Any) -> Any:
    return relax.TensorType([int(size) for size in buffer.shape], str(buffer.dtype))
