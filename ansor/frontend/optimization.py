"""From operators to few, fused, distinct functions.

Batch norms are folded into convolutions, activations become channels-last, weights are transposed
once at compile time, element-wise operators join the function that feeds them.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax
from tvm.target import Target

from ansor.errors import UnsupportedError
from ansor.frontend.passes.batch_norm import fold_batch_norms
from ansor.frontend.passes.channels_last import channels_last
from ansor.frontend.passes.constant_folding import fold_constants
from ansor.frontend.passes.depthwise_pointwise import fuse_pairs
from ansor.frontend.passes.groups.network import with_whole_groups
from ansor.frontend.passes.integer.channel_groups import with_whole_channels
from ansor.frontend.passes.integer.form import integer_form
from ansor.frontend.passes.integer.storage import stored_in_eight_bits
from ansor.frontend.passes.plain_definition import without_empty_reductions
from ansor.frontend.passes.simplify import simplify_calls
from ansor.frontend.passes.transposed_convolution import with_spread
from ansor.frontend.passes.wide_accumulation import with_wide_sums
from ansor.frontend.rewrite import op_name
from ansor.targets.registry import backend_of

LOW_LEVEL = frozenset(("relax.call_tir", "relax.call_tir_inplace", "relax.call_tir_with_grad"))


def optimize(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """One Relax function that only calls PrimFuncs, each distinct one once in the module.

    Raises:
        UnsupportedError: an operator that TVM cannot turn into a PrimFunc, with its place.
    """
    with target:
        return in_groups(fuse(plain_form(mod, target), target), target)


def plain_form(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """Simple operators, channels last, with the sums that suit the target.

    Quantised networks compute in integers.
    """
    network = backend_of(target).network
    simple = integer_form(inference_form(mod), network.activations(target))
    summed = with_wide_sums(simple) if network.wide_sums else simple
    return with_whole_channels(channels_last(summed))


def _run(mod: tvm.IRModule, *passes: Any) -> tvm.IRModule:
    return tvm.transform.Sequential(list(passes))(mod)


def inference_form(mod: tvm.IRModule) -> tvm.IRModule:
    """Simple operators only: batch norms and dropouts gone, constants evaluated.

    Tidied first: importers leave tuples behind, between a convolution and its batch norm too.
    """
    tidy = _run(mod, relax.transform.CanonicalizeBindings(), relax.transform.DeadCodeElimination())
    folded = fold_batch_norms(fold_constants(simplify_calls(tidy)))
    decomposed = _run(folded, relax.transform.DecomposeOpsForInference())
    return fold_constants(simplify_calls(decomposed))


def fuse(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """Operators become PrimFuncs and PrimFuncs are fused; equal ones are shared.

    Reshapes that stand alone become views, which cost nothing at run time. On some kinds of targets
    a convolution may join the one before.
    """
    lowered = _run(
        stored_in_eight_bits(with_spread(mod)),
        relax.transform.FoldConstant(),
        relax.backend.DispatchSortScan(),
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
    )
    _check_lowered(lowered)
    fused = _run(
        without_empty_reductions(lowered),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
        relax.transform.RewriteDataflowReshape(),
        relax.transform.DeadCodeElimination(),
    )
    return fuse_pairs(fused) if backend_of(target).network.joins_depthwise else fused


def in_groups(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """An optimised module whose products fill the groups of the target's instructions."""
    return with_whole_groups(mod, backend_of(target).network.dot_instructions(target))


def _check_lowered(mod: tvm.IRModule) -> None:
    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            _check_bindings(function)


def _check_bindings(function: Any) -> None:
    for block in function.body.blocks:
        for binding in block.bindings:
            if isinstance(binding, relax.VarBinding):
                _check_value(binding.var.name, binding.value)


def _check_value(variable: str, value: Any) -> None:
    name = op_name(value)
    if not name or name in LOW_LEVEL:
        return
    if name == "relax.call_pure_packed":
        name = str(value.args[0].global_symbol)
    raise UnsupportedError(
        f"operator {name} (bound to {variable!r}) cannot be scheduled",
        "replace the operator in the model",
    )
