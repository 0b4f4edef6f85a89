"""Other definitions of a network's functions: which there are, and putting one in place.

A variant is found by optimising the network once more in another form; its functions stand where
those of the plain form stand, call by call.

Deviation: the paper tunes one definition of each function; here measurements also select between
direct convolution and minimal filtering.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import GenericConst
from tvm.target import Target

from ansor.frontend.distinct_functions import ExtractedFunction, extract_functions, tir_calls
from ansor.frontend.optimization import fuse, in_groups, plain_form
from ansor.frontend.passes.winograd_convolution import with_winograd
from ansor.frontend.rewrite import (
    Lookup,
    constant,
    op_name,
    rewrite_calls,
    static_shape,
    with_functions,
)
from ansor.targets.registry import backend_of
from ansor.workloads.minimal_filtering.filtered_definition import with_filtering
from ansor.workloads.minimal_filtering.transformed_weights import transform_weight
from ansor.workloads.minimal_filtering.transforms import (
    F2,
    F2_PHASES,
    F2_STRIDE2,
    F2_TRANSPOSED,
    F2_WIDE,
    F3,
    F3_PHASES,
    F4,
    F4_PHASES,
    F4_TRANSPOSED,
    F4_WIDE,
    Transform,
)
from ansor.workloads.workload import Array

# Kinds of variants; all of them are slightly less exact than the definition.
KINDS: Mapping[str, tuple[Transform, ...]] = MappingProxyType(
    {
        "winograd2": (F2, F2_STRIDE2, F2_TRANSPOSED, F2_WIDE, *F2_PHASES),
        "winograd3": (F3, *F3_PHASES),
        "winograd4": (F4, F4_TRANSPOSED, F4_WIDE, *F4_PHASES),
    }
)


@dataclass(frozen=True)
class ConvertedWeight:
    """A parameter that differs from the plain definition's.

    Attributes:
        position: of the parameter.
        transform: makes it of the plain definition's weights.
        shape: of the transformed weights. The plain definition's may have zeros behind their ends.
        dtype: of the transformed weights.
    """

    position: int
    transform: Transform
    shape: tuple[int, ...]
    dtype: str = "float32"

    def of(self, weight: Array) -> Array:
        """The transformed weights."""
        made = transform_weight(weight, self.transform, self.dtype)
        return made[tuple(map(slice, self.shape))]


@dataclass(frozen=True, eq=False)
class Variant:
    """Another definition of a function.

    Attributes:
        kind: one of `KINDS`.
        replaces: name of the function that computes the same.
        function: the definition; its parameters are those of the other one, but for `weight`.
        weight: the parameter that takes transformed weights, if one does.
    """

    kind: str
    replaces: str
    function: ExtractedFunction
    weight: ConvertedWeight | None = None


def optimize_with_variants(
    mod: tvm.IRModule, target: Target, kinds: Collection[str] = tuple(KINDS)
) -> tuple[tvm.IRModule, tuple[Variant, ...]]:
    """Like `graph.optimize`, with the variants of its functions that the kind of target allows."""
    with target:
        plain = plain_form(mod, target)
        fused = fuse(plain, target)
        grouped = in_groups(fused, target)
        if not backend_of(target).network.filtering:
            return grouped, ()
        found = [v for kind in kinds for v in _variants(kind, plain, fused, target)]
    return grouped, tuple(found)


def operator_variants(
    mod: tvm.IRModule, kinds: Collection[str] = tuple(KINDS)
) -> tuple[Variant, ...]:
    """The variants of a module's functions that take what these take, weights as they are."""
    found = []
    for function in extract_functions(mod):
        for kind in kinds:
            func = with_filtering(function.func, KINDS[kind])
            if func is not function.func:
                own = replace(function, name=f"{function.name}_{kind}", func=func)
                found.append(Variant(kind, function.name, own))
    return tuple(found)


def _variants(kind: str, plain: tvm.IRModule, fused: tvm.IRModule, target: Target) -> list[Variant]:
    other = with_winograd(plain, KINDS[kind], _unfilled)
    if other is plain:
        return []
    other = fuse(other, target)
    calls, others = list(tir_calls(fused)), list(tir_calls(other))
    pairs = list(zip(calls, others, strict=False))
    if len(calls) != len(others) or any(not _same_result(*pair) for pair in pairs):
        warnings.warn(f"{kind} is left out: it changes how operators fuse", stacklevel=2)
        return []
    functions = {function.name: function for function in extract_functions(other)}
    found: dict[str, Variant] = {}
    for call, stands_in in pairs:
        weights = _differing(call, stands_in)
        name = str(call.args[0].name_hint)
        if len(weights) == 1 and name not in found:
            function = functions[str(stands_in.args[0].name_hint)]
            weight = _converted(kind, call, stands_in, weights[0])
            found[name] = Variant(kind, name, function, weight)
    return list(found.values())


def _converted(kind: str, call: Any, other: Any, position: int) -> ConvertedWeight:
    """The conversion by which a transform of a kind made another call's weights of these."""
    before, after = (static_shape(c.args[1].fields[position]) or () for c in (call, other))
    made = (t for t in KINDS[kind] if t.takes(before[-4:-2]) and t.shape_of(before) == after)
    return ConvertedWeight(position, next(made), after)


def _unfilled(weight: Array, transform: Transform) -> Array:
    """Weights whose values do not matter, because their module is never run."""
    return np.zeros(transform.shape_of(weight.shape), weight.dtype)


def _same_result(call: Any, other: Any) -> bool:
    counts = [len(c.args[1].fields) for c in (call, other)]
    return counts[0] == counts[1] and static_shape(call) == static_shape(other)


def _differing(call: Any, other: Any) -> list[int]:
    """Positions of weights whose shapes are not the same."""
    pairs = enumerate(zip(call.args[1].fields, other.args[1].fields, strict=True))
    return [
        i
        for i, (mine, its) in pairs
        if isinstance(its, GenericConst) and static_shape(mine) != static_shape(its)
    ]


def with_variants(mod: tvm.IRModule, chosen: Mapping[str, Variant]) -> tvm.IRModule:
    """A copy of the module that calls the chosen variant of each function named.

    Args:
        mod: an optimised module.
        chosen: variant by name of the function that it replaces.
    """
    if not chosen:
        return mod
    functions = {v.function.name: v.function.func for v in chosen.values()}
    plain = {name: func.without_attr("global_symbol") for name, func in functions.items()}
    extended = with_functions(mod, plain)

    def replaced(call: Any, lookup: Lookup) -> Any:
        is_tir = op_name(call) == "relax.call_tir"
        variant = chosen.get(str(call.args[0].name_hint)) if is_tir else None
        if variant is None:
            return call
        fields = list(call.args[1].fields)
        if variant.weight is not None:
            position = variant.weight.position
            weight = variant.weight.of(lookup(fields[position]).value.numpy())
            fields[position] = constant(weight, variant.weight.dtype)
        function = extended.get_global_var(variant.function.name)
        return relax.call_tir(function, relax.Tuple(fields), call.ty)

    return rewrite_calls(extended, replaced)
