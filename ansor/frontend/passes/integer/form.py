"""Networks with quantised tensors, computed in integers if possible."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import tvm
from tvm import relax

from ansor.frontend.passes.constant_folding import fold_constants
from ansor.frontend.passes.integer.arithmetic import in_arithmetic, without_integers
from ansor.frontend.passes.integer.bindings import Bindings
from ansor.frontend.passes.integer.codes import EIGHT_BITS
from ansor.frontend.passes.integer.convolution import NAMES as CONVOLUTIONS
from ansor.frontend.passes.integer.convolution import integer_convolution
from ansor.frontend.passes.integer.movement import DEQUANTIZE, QUANTIZE, on_integers
from ansor.frontend.passes.integer.parameters import Array, known
from ansor.frontend.passes.integer.product import NAME as PRODUCT
from ansor.frontend.passes.integer.product import integer_product
from ansor.frontend.passes.integer.requantization import with_unit_scales
from ansor.frontend.passes.integer.sign import with_activations
from ansor.frontend.passes.integer.storage import ends_of
from ansor.frontend.rewrite import Lookup, op_name, rewrite_calls, static_shape


def integer_form(mod: tvm.IRModule, activations: str | None = None) -> tvm.IRModule:
    """The module without `quantize` and `dequantize`, its products of 8-bit integers in int32.

    - A product sums `uint8` or `int8` times `int8` in int32. With `activations`, its left operand
      has that dtype. Zero points and bias are one int32 constant, and the scales of both operands
      one float32 constant.
    - Activations and residuals follow in float32. The result's scale is in the constants before
      them, so that rounding and clipping end the function.
    - Data movement and maxima stay in 8 bits.

    A module without quantised tensors does not change.
    """
    if not _has_integers(mod):
        return mod
    plain = fold_constants(rewrite_calls(mod, _known_constant))
    if activations is not None:
        plain = fold_constants(with_activations(plain, activations))
    moved = fold_constants(rewrite_calls(plain, on_integers))
    rules = (partial(rule, activations=activations) for rule in (_biased_product, _product))
    products = reduce(rewrite_calls, rules, moved)
    pairs = _without_integers_between(with_unit_scales(products))
    return fold_constants(rewrite_calls(pairs, in_arithmetic))


def _without_integers_between(mod: tvm.IRModule) -> tvm.IRModule:
    """`mod` without integers that only an operator of the same function reads."""
    graph = Bindings.of(mod)
    ends = ends_of(graph)

    def rule(call: Any, lookup: Lookup) -> Any:
        stays = op_name(call) != DEQUANTIZE or call.args[0] in ends
        return call if stays else without_integers(call, lookup, graph)

    return rewrite_calls(mod, rule)


def _has_integers(mod: tvm.IRModule) -> bool:
    return any(
        _is_integer(binding.value)
        for function in mod.functions.values()
        if isinstance(function, relax.Function)
        for block in function.body.blocks
        for binding in block.bindings
    )


def _is_integer(value: Any) -> bool:
    name = op_name(value)
    is_product = name == PRODUCT or name in CONVOLUTIONS
    return name in (QUANTIZE, DEQUANTIZE) or (is_product and str(value.ty.dtype) == "int32")


def _known_constant(call: Any, lookup: Lookup) -> Any:
    """Quantised weights, and constants of more than 8 bits such as biases, as their values."""
    name = op_name(call)
    is_wide = name == DEQUANTIZE and str(call.args[0].ty.dtype) not in EIGHT_BITS
    if name != QUANTIZE and not is_wide:
        return call
    is_known = all(known(arg, lookup) is not None for arg in call.args)
    return in_arithmetic(call, lookup) if is_known else call


def _product(call: Any, lookup: Lookup, activations: str | None) -> Any:
    found = _in_integers(call, None, activations, lookup)
    return call if found is None else found


def _in_integers(
    call: Any, bias: Array | None, activations: str | None, lookup: Lookup
) -> Any | None:
    name = op_name(call)
    if name in CONVOLUTIONS:
        return integer_convolution(call, bias, activations, lookup)
    return integer_product(call, bias, activations, lookup) if name == PRODUCT else None


def _biased_product(call: Any, lookup: Lookup, activations: str | None) -> Any:
    """A sum of a float32 product and a constant along its channels."""
    if op_name(call) != "relax.add" or str(call.ty.dtype) != "float32":
        return call
    for product, bias in (call.args, reversed(call.args)):
        values = _bias(bias, lookup)
        source = lookup(product)
        if values is None or not _is_along_channels(values, source):
            continue
        found = _in_integers(source, values, activations, lookup)
        if found is not None:
            return found
    return call


def _bias(expr: Any, lookup: Lookup) -> Array | None:
    """The values of a constant, quantised or not."""
    value = lookup(expr)
    plain = in_arithmetic(value, lookup) if op_name(value) == DEQUANTIZE else value
    return known(plain, lookup)


def _is_along_channels(values: Array, product: Any) -> bool:
    rank, shape = len(static_shape(product) or ()), values.shape
    axis = rank - 1 if op_name(product) == PRODUCT else 1
    padded = (1,) * (rank - len(shape)) + shape
    return len(padded) == rank and all(n == 1 for place, n in enumerate(padded) if place != axis)
