"""Splits vectorised loops that are longer than a register into whole registers and a rest.

LLVM splits a vector of two or four registers in halves. It rounds any other vector above a register
up to a power of two, and processes it element by element. A product on tiles of 6 x 48 then took
ten times as long as with three vectors of 16. On tiles of 4 x 28 it took five times as long.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import SBlockRealize
from tvm_ffi import structural_map

from ansor.lowering.statements import collect, sequence, substitute_variables


def whole_vectors(mod: tvm.IRModule, vector_bytes: int) -> tvm.IRModule:
    """The module with the vectorised loops of its scheduled functions split into whole registers.

    Args:
        vector_bytes: of a register.
    """

    def cut(func: Any) -> Any:
        if not isinstance(func, tirx.PrimFunc):
            return func
        body = structural_map(func.body, (tirx.For, lambda loop: _cut(loop, vector_bytes)))
        return func.with_body(body)

    functions = {variable: cut(func) for variable, func in mod.functions.items()}
    return tvm.IRModule(functions, attrs=mod.attrs)


def _cut(loop: tirx.For, vector_bytes: int) -> Any:
    """The loop, or an unrolled loop of whole vectors and a shorter vector after it."""
    if loop.kind != tirx.ForKind.VECTORIZED or not isinstance(loop.extent, tirx.IntImm):
        return loop
    extent, lanes = int(loop.extent), _lanes(loop, vector_bytes)
    if extent <= lanes or extent & (extent - 1) == 0:
        return loop
    whole, rest = divmod(extent, lanes)
    number = tirx.Var(f"{loop.loop_var.name}_vector", str(loop.loop_var.ty.dtype))
    unrolled = tirx.For(
        number, 0, whole, tirx.ForKind.UNROLLED, _vector(loop, number * lanes, lanes)
    )
    return sequence(unrolled, _vector(loop, whole * lanes, rest)) if rest else unrolled


def _lanes(loop: tirx.For, vector_bytes: int) -> int:
    """Elements of a register, for the dtype that the loop writes."""
    blocks = [realize.block for realize in collect(loop.body, SBlockRealize)]
    sizes = [w.source.dtype.itemsize for b in blocks for w in b.writes]
    return vector_bytes // max(sizes) if sizes else int(loop.extent)


def _vector(loop: tirx.For, first: Any, extent: int) -> tirx.For:
    """Iterations of the loop from `first` on, as a vector."""
    lane = tirx.Var(loop.loop_var.name, str(loop.loop_var.ty.dtype))
    body = substitute_variables(loop.body, {loop.loop_var: first + lane})
    return tirx.For(lane, 0, extent, tirx.ForKind.VECTORIZED, body)
