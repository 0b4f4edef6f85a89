"""Tensors between functions in 8 bits.

Fusion extends a product by all following operators, also by a conversion to float32 for the next
function. If another product is fused with the next operator, four times the bytes are stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tvm
from tvm import relax

from ansor.frontend.dataflow_outputs import with_outputs
from ansor.frontend.passes.integer.bindings import Bindings
from ansor.frontend.passes.integer.codes import EIGHT_BITS
from ansor.frontend.passes.integer.convolution import NAMES as CONVOLUTIONS
from ansor.frontend.passes.integer.movement import TRANSPOSE
from ansor.frontend.passes.integer.product import NAME as PRODUCT
from ansor.frontend.rewrite import op_name

_ANCHORS = frozenset((PRODUCT, *CONVOLUTIONS))
_JOINS = frozenset(("relax.add", "relax.subtract", "relax.multiply"))


def stored_in_eight_bits(mod: tvm.IRModule) -> tvm.IRModule:
    """`mod` with outputs of its dataflow blocks where a tensor of 8 bits ends a function.

    Fusion ends at outputs. If an operator joins the results of two products, it is fused with the
    first one, and the function of the other one ends. A tensor is quantised in the order of its
    memory, so that its function ends before a transposition.
    """
    ends = ends_of(Bindings.of(mod))
    return with_outputs(mod, ends)[0] if ends else mod


def ends_of(bindings: Bindings) -> set[Any]:
    """The variables of 8 bits that end a function."""
    return {tensor for call in bindings.values.values() for tensor in _ends(call, bindings)}


def _ends(call: Any, bindings: Bindings) -> Iterator[Any]:
    """The variables before a call that end a function."""
    if op_name(call) == TRANSPOSE and _is_quantized(call.args[0], bindings):
        yield from _last_integers(call.args[0], bindings)
    if op_name(call) in _JOINS and all(_has_anchor(operand, bindings) for operand in call.args):
        first, second = call.args
        order = [value for value in bindings.values if value in (first, second)]
        yield from _last_integers(order[-1], bindings)


def _is_quantized(expr: Any, bindings: Bindings) -> bool:
    """Whether the function of an operand quantises it, without a product."""
    call = bindings.value(expr)
    while isinstance(call, relax.Call) and call.args and op_name(call) != TRANSPOSE:
        if op_name(call) == "relax.astype":
            return not _has_anchor(expr, bindings)
        call = bindings.value(call.args[0])
    return False


def _has_anchor(expr: Any, bindings: Bindings) -> bool:
    """Whether a product is computed in the function of an operand."""
    call = bindings.value(expr)
    if op_name(call) in _ANCHORS:
        return True
    return isinstance(call, relax.Call) and any(_has_anchor(arg, bindings) for arg in call.args)


def _last_integers(expr: Any, bindings: Bindings) -> Iterator[Any]:
    """The last variable of 8 bits on the way to an operand, if nothing else reads it."""
    call = bindings.value(expr)
    while isinstance(call, relax.Call) and call.args:
        if str(getattr(expr.ty, "dtype", "")) in EIGHT_BITS:
            yield expr
            return
        expr = call.args[0]
        call = bindings.value(expr)
